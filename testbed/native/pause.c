// SPDX-License-Identifier: Apache-2.0
// A first process. Alone it holds the namespaces of a pod open; with a command it runs that and
// ends with its status. Either way it reaps the orphans that a first process inherits. C and
// static, since it is all that the image of a sandbox contains.
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int signal_number) {
  (void)signal_number;
  _exit(0);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    signal(SIGINT, leave);
    signal(SIGTERM, leave);
    signal(SIGCHLD, SIG_IGN);  // The kernel reaps.
    for (;;) pause();
  }
  const pid_t command = fork();
  if (command < 0) return 126;
  if (command == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execv(argv[1], argv + 1);
    _exit(127);
  }
  for (;;) {
    int status = 0;
    const pid_t ended = wait(&status);
    if (ended == command) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ended < 0 && errno != EINTR) return 126;
  }
}
