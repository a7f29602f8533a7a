# SPDX-License-Identifier: Apache-2.0
"""Container images from static binaries, without a registry: what `docker save` would write, and containerd reads."""
import dataclasses
import hashlib
import io
import json
import pathlib
import platform
import subprocess
import tarfile

PAUSE = "localhost/pause:1"
APP = "localhost/app:1"
BUSYBOX = "localhost/busybox:1"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclasses.dataclass
class Image:
    name: str
    files: list  # (path here, path in the image)
    entrypoint: list
    links: list = dataclasses.field(default_factory=list)  # (path in the image, what it points to)
    user: str = ""


def busybox(binary):
    """A shell and its applets under the name of each."""
    listed = subprocess.run([str(binary), "--list"], capture_output=True, text=True, check=True).stdout.split()
    return Image(BUSYBOX, [(binary, "/bin/busybox")], entrypoint=["/bin/sh"],
                 links=[(f"/bin/{applet}", "busybox") for applet in listed if applet != "busybox"])


def layer_of(image):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for folder, mode in (("bin", 0o755), ("etc", 0o755), ("tmp", 0o1777)):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            layer.addfile(entry)
        accounts = b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"
        add(layer, "etc/passwd", accounts, 0o644)
        for source, target in image.files:
            add(layer, target.lstrip("/"), pathlib.Path(source).read_bytes(), 0o755)
        for name, target in image.links:
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            layer.addfile(entry)
    return buffer.getvalue()


def add(archive, name, content, mode):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def write(path, images):
    """One archive of several images, so that a node imports them with one command."""
    manifest, content = [], {}
    for image in images:
        layer = layer_of(image)
        digest = hashlib.sha256(layer).hexdigest()
        config = json.dumps({
            "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()), "os": "linux",
            "config": {"Entrypoint": image.entrypoint, "Env": ["PATH=/bin"], "User": image.user},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}, "history": [{}],
        }).encode()
        config_name = f"{hashlib.sha256(config).hexdigest()}.json"
        content[config_name] = config
        content[f"{digest}/layer.tar"] = layer
        manifest.append({"Config": config_name, "RepoTags": [image.name], "Layers": [f"{digest}/layer.tar"]})
    content["manifest.json"] = json.dumps(manifest).encode()
    with tarfile.open(path, "w") as archive:
        for name, data in content.items():
            add(archive, name, data, 0o644)
