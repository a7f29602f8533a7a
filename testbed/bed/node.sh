#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the namespaces it runs in (unshare --mount --net --uts) those of a node. Then says "ready" and waits until its
# input closes: by then the supervisor holds the namespaces open.
#
#   node.sh NAME ADDRESS NETWORK FOLDER
set -eu
name=$1 address=$2 network=$3 folder=$4

# Mounts of the kubelet show in the node's other processes, and nowhere else.
mount --make-rshared /

# A node writes where nodes write; all of it lies in its folder.
mkdir -p "$folder/var-lib" "$folder/var-log"
mount --bind "$folder/var-lib" /var/lib
mount --bind "$folder/var-log" /var/log

# A kubelet insists on these for the whole machine. It finds what it wants, and the machine stays as it is.
tunable() {
  [ -e "/proc/sys/$1" ] || return 0
  file="$folder/$(echo "$1" | tr / -)"
  echo "$2" >"$file"
  mount --bind "$file" "/proc/sys/$1"
}
tunable vm/overcommit_memory 1
tunable vm/panic_on_oom 0
tunable kernel/panic 10
tunable kernel/panic_on_oops 1
tunable kernel/keys/root_maxkeys 1000000
tunable kernel/keys/root_maxbytes 25000000

hostname "$name"
ip link set lo up
ip tuntap add dev wan0 mode tun
ip address add "$address/32" dev wan0
ip link set wan0 mtu 1500 txqueuelen 1000 up
ip route add "$network" dev wan0 src "$address"
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 0 >/proc/sys/net/ipv4/tcp_slow_start_after_idle

echo ready
read -r _ || true
