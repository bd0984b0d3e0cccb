/* user/cli/run/spawn.c - fork, seize, exec. Each stop of the command is answered; none is kept. */
#include "cli/run/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/sys/process.h"
#include "cli/stop.h"

enum { EXIT_NOT_RUN = 127 };

struct spawn {
	pid_t pid;
	enum spawn_state state;
	bool traced, reaped;
	int status;	    /* as a shell would tell it, once the command has ended */
	int exec_error_fd;  /* the child writes here why exec failed; -1 once it was read */
	char not_held[128]; /* why it could not be held; "" when it is */
};

static struct sigaction inherited[_NSIG];
static sigset_t inherited_mask;
static int news_fd = -1; /* an eventfd: readable after SIGCHLD */

void spawn_remember_signals(void)
{
	for (int sig = 1; sig < _NSIG; sig++)
		sigaction(sig, NULL, &inherited[sig]);
	sigprocmask(SIG_BLOCK, NULL, &inherited_mask);
}

static void on_child(int sig)
{
	uint64_t one = 1;
	int saved = errno;

	(void)sig;
	(void)!write(news_fd, &one, sizeof(one));
	errno = saved;
}

/* ---- the child, up to exec ---- */

/* exec resets handlers to the default; signals that were ignored must be ignored again. */
static void restore_signals(void)
{
	for (int sig = 1; sig < _NSIG; sig++) {
		struct sigaction sa = { .sa_handler = inherited[sig].sa_handler == SIG_IGN ?
							      SIG_IGN :
							      SIG_DFL };

		sigaction(sig, &sa, NULL); /* fails for signals whose action cannot be changed */
	}
	sigprocmask(SIG_SETMASK, &inherited_mask, NULL);
}

__attribute__((noreturn)) static void child(char **argv, int go_fd, int error_fd)
{
	char go;
	int code;

	restore_signals();
	if (read(go_fd, &go, 1) != 1)
		_exit(EXIT_NOT_RUN);
	execvp(argv[0], argv);
	code = errno;
	(void)!write(error_fd, &code, sizeof(code));
	_exit(EXIT_NOT_RUN);
}

/* ---- the parent ---- */

static int close_pipe(int p[2], struct err *e, const char *what)
{
	int code = errno;

	closep(&p[0]);
	closep(&p[1]);
	errno = code;
	return err_sys(e, "%s", what);
}

static int listen_to_children(struct err *e)
{
	struct sigaction sa = { .sa_handler = on_child, .sa_flags = SA_RESTART };

	if (news_fd < 0)
		news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (news_fd < 0)
		return err_sys(e, "eventfd");
	/*
	 * When SIGCHLD is ignored, as we may have inherited it, ended children leave no zombies
	 * to ask.
	 */
	return sigaction(SIGCHLD, &sa, NULL) ? err_sys(e, "sigaction") : 0;
}

/* Forks with every signal blocked, so that no signal meets our handlers in the child. */
static int start_child(struct spawn *s, char **argv, int go[2], int error[2], struct err *e)
{
	sigset_t all, before;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	s->pid = fork();
	if (s->pid == 0) {
		close(go[1]);
		child(argv, go[0], error[1]);
	}
	if (s->pid > 0)
		stop_pass_to(s->pid);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return s->pid < 0 ? err_sys(e, "cannot start a process") : 0;
}

static void seize(struct spawn *s)
{
	s->traced = !ptrace(PTRACE_SEIZE, s->pid, NULL, (void *)PTRACE_O_TRACEEXEC);
	if (!s->traced)
		snprintf(s->not_held, sizeof(s->not_held), "%s", strerror(errno));
}

/* Why exec failed, or 0. Blocks until the child has called exec. */
static int exec_error(struct spawn *s)
{
	int code = 0;
	ssize_t n;

	do
		n = read(s->exec_error_fd, &code, sizeof(code));
	while (n < 0 && errno == EINTR);
	closep(&s->exec_error_fd);
	s->exec_error_fd = -1;
	return n == sizeof(code) ? code : 0;
}

/* @stop: the signal, and in the bits above it the event of ptrace(2). */
static void answer_stop(struct spawn *s, int stop)
{
	int sig = stop & 0xff, event = stop >> 8;

	if (!s->traced)
		return; /* the command deals with this stop itself */
	if (event == PTRACE_EVENT_EXEC) {
		s->state = SPAWN_HELD;
		return;
	}
	if (event == PTRACE_EVENT_STOP && sig != SIGTRAP)
		ptrace(PTRACE_LISTEN, s->pid, NULL, NULL); /* Ctrl-Z: it stays stopped */
	else
		ptrace(PTRACE_CONT, s->pid, NULL, (void *)(intptr_t)(event ? 0 : sig));
}

/* Takes one change of the command's state; @flags: WNOHANG or 0. False: there is none (yet). */
static bool take_change(struct spawn *s, int flags)
{
	siginfo_t si = { 0 };

	if (s->state != SPAWN_RUNS)
		return false;
	/*
	 * An end is only looked at and not reaped: so the number stays the command's until
	 * spawn_reap().
	 */
	if (waitid(P_PID, (id_t)s->pid, &si, WEXITED | WSTOPPED | WNOWAIT | flags) || !si.si_pid)
		return false;
	if (si.si_code == CLD_EXITED || si.si_code == CLD_KILLED || si.si_code == CLD_DUMPED) {
		s->status = si.si_code == CLD_EXITED ? si.si_status : 128 + si.si_status;
		s->state = SPAWN_ENDED;
		return true;
	}
	if (!waitid(P_PID, (id_t)s->pid, &si, WSTOPPED | WNOHANG) && si.si_pid)
		answer_stop(s, si.si_status);
	return true;
}

static void wait_for_exec(struct spawn *s)
{
	while (s->state == SPAWN_RUNS && (take_change(s, 0) || errno == EINTR))
		;
}

int spawn_start(char **argv, struct spawn **out, bool *failed_exec, struct err *e)
{
	CLEANUP(spawn_freep) struct spawn *s = calloc(1, sizeof(*s));
	int go[2], error[2], ret, code = 0;

	*failed_exec = false;
	if (!s)
		return err_set(e, -ENOMEM, "no memory for a command");
	*s = (struct spawn){ .exec_error_fd = -1, .state = SPAWN_RUNS };
	if (listen_to_children(e))
		return -errno;
	if (pipe2(go, O_CLOEXEC))
		return err_sys(e, "pipe");
	if (pipe2(error, O_CLOEXEC))
		return close_pipe(go, e, "pipe");
	s->exec_error_fd = error[0];
	ret = start_child(s, argv, go, error, e);
	close(error[1]);
	close(go[0]);
	if (!ret) {
		seize(s);
		(void)!write(go[1], "", 1);
	}
	close(go[1]);
	if (ret)
		return ret;
	if (s->traced)
		wait_for_exec(s);
	if (!s->traced || s->state == SPAWN_ENDED)
		code = exec_error(s);
	if (code) {
		*failed_exec = true;
		spawn_reap(s);
		return err_set(e, -code, "cannot run %s: %s", argv[0], strerror(code));
	}
	*out = TAKE(s);
	return 0;
}

pid_t spawn_pid(const struct spawn *s)
{
	return s->pid;
}

int spawn_fd(const struct spawn *s)
{
	(void)s;
	return news_fd;
}

enum spawn_state spawn_step(struct spawn *s)
{
	uint64_t n;

	(void)!read(news_fd, &n, sizeof(n));
	while (take_change(s, WNOHANG))
		;
	return s->state;
}

static void let_go(struct spawn *s, enum __ptrace_request how)
{
	if (s->state != SPAWN_HELD)
		return;
	ptrace(how, s->pid, NULL, NULL); /* fails when SIGKILL came first */
	s->state = SPAWN_RUNS;
	s->traced = how == PTRACE_CONT;
}

void spawn_continue(struct spawn *s)
{
	let_go(s, PTRACE_CONT);
}

void spawn_release(struct spawn *s)
{
	let_go(s, PTRACE_DETACH);
}

bool spawn_traces(const struct spawn *s)
{
	return s->traced;
}

const char *spawn_not_held(const struct spawn *s)
{
	return s->not_held[0] ? s->not_held : NULL;
}

/* The effective id on a line "Uid:	real	effective	saved	fs" of /proc/PID/status. */
static bool effective(const char *line, const char *name, unsigned long *id)
{
	size_t n = strlen(name);
	char *end;

	if (strncmp(line, name, n))
		return false;
	strtoul(line + n, &end, 10);
	*id = strtoul(end, NULL, 10);
	return true;
}

static bool effective_ids(pid_t pid, unsigned long *uid, unsigned long *gid)
{
	CLEANUP(fclosep) FILE *f = NULL;
	char path[32], line[256];
	int found = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		found += effective(line, "Uid:", uid) || effective(line, "Gid:", gid);
	return found == 2;
}

bool spawn_lost_setid(const struct spawn *s)
{
	char path[32];
	struct stat st;
	unsigned long uid, gid;

	snprintf(path, sizeof(path), "/proc/%d/exe", s->pid);
	if (!s->traced || stat(path, &st) || !effective_ids(s->pid, &uid, &gid))
		return false;
	return (st.st_mode & S_ISUID && st.st_uid != uid) ||
	       ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != gid);
}

int spawn_status(const struct spawn *s)
{
	return s->status;
}

void spawn_reap(struct spawn *s)
{
	if (s->reaped)
		return;
	while (s->state != SPAWN_ENDED) {
		spawn_release(s);
		if (!take_change(s, 0) && errno != EINTR)
			break;
	}
	stop_pass_to(0);
	process_wait(s->pid);
	s->reaped = true;
}

void spawn_free(struct spawn *s)
{
	if (!s)
		return;
	spawn_release(s);
	closep(&s->exec_error_fd);
	free(s);
}
