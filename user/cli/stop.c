/* user/cli/stop.c - one handler for the signals that ask us to stop. */
#include "cli/stop.h"

#include "base/clock.h"
#include "cli/cmd.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>

/*
 * One wish to stop often comes as several signals: timeout(1) signals the child and then its
 * whole group, a service manager sends SIGTERM with SIGHUP. Signals within this time count as one
 * wish.
 */
enum { SAME_WISH_MS = 500 };

static int wish_fd = -1;
static volatile sig_atomic_t asked;
static uint64_t first_ms; /* written before asked is set, and read after */

static volatile sig_atomic_t at_once_pid; /* not a child that inherited the handler */

static _Noreturn void end_at_once(void)
{
	static const char text[] = "goprof-bpf: stopped before there was anything to keep\n";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(EXIT_FAILED);
}

static void on_signal(int sig)
{
	int saved = errno;
	uint64_t one = 1;

	if (at_once_pid && at_once_pid == getpid())
		end_at_once();
	if (!asked) {
		first_ms = now_ns() / NS_PER_MS;
		asked = 1;
		(void)!write(wish_fd, &one, sizeof(one));
	} else if (now_ns() / NS_PER_MS - first_ms > SAME_WISH_MS) {
		_exit(128 + sig);
	}
	errno = saved;
}

static int catch_signal(struct err *e, int sig, struct sigaction *sa)
{
	return sigaction(sig, sa, NULL) ? err_sys(e, "sigaction") : 0;
}

/* ---- a wish that nobody hears ---- */

enum { WATCH_STACK = 65536 };

/* What ends a process, and is not a fault of its own: what there is is written. */
static const int wishes[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

static bool wish_pending(const sigset_t *of)
{
	sigset_t pending;
	bool any = false;

	if (sigpending(&pending))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(wishes); i++)
		any |= sigismember(of, wishes[i]) && sigismember(&pending, wishes[i]);
	return any;
}

/* Is the main thread in a wait that no handled signal ends? One that merely gets no CPU is not. */
static bool is_deaf(void)
{
	CLEANUP(closep) int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	char text[128], *name_end;
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	text[n > 0 ? n : 0] = 0;
	name_end = strrchr(text, ')');
	return name_end && !strncmp(name_end, ") D", 3);
}

/*
 * Memory of the target may never come (it may map a file whose file system does not answer), and a
 * handled signal does not end the wait for it: it stays pending for the process. The end of the process
 * does end the wait. So that is what a signal means that has been pending for a second.
 */
static void *watch(void *of)
{
	static const char text[] = "goprof-bpf: stopped while it waited for memory or a file that "
				   "does not come: nothing was kept\n";
	unsigned looks = 0;

	while (looks < 2) {
		struct timespec ts = { .tv_sec = 1 };

		(void)nanosleep(&ts, NULL);
		looks = wish_pending(of) && is_deaf() ? looks + 1 : 0;
	}
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(EXIT_FAILED);
}

/* A thread that blocks all signals, so that none is handled there; those blocked everywhere do not count. */
static int start_watch(struct err *e)
{
	static sigset_t of;
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int ret;

	sigfillset(&all);
	sigemptyset(&of);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (size_t i = 0; i < ARRAY_LEN(wishes); i++)
		if (!sigismember(&before, wishes[i]))
			sigaddset(&of, wishes[i]);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, WATCH_STACK);
	ret = pthread_create(&thread, &attr, watch, &of);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret ? err_set(e, -ret, "a thread that waits for signals: %s", strerror(ret)) : 0;
}

static int make_wish_fd(struct err *e)
{
	wish_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return wish_fd < 0 ? err_sys(e, "eventfd") : 0;
}

int stop_init(struct err *e)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, old;
	int ret = make_wish_fd(e);

	/* while one handler runs, the other signals wait */
	for (size_t i = 0; i < ARRAY_LEN(wishes); i++)
		sigaddset(&sa.sa_mask, wishes[i]);
	for (size_t i = 0; !ret && i < ARRAY_LEN(wishes); i++) {
		if (sigaction(wishes[i], NULL, &old))
			return err_sys(e, "sigaction");
		if (wishes[i] == SIGHUP && old.sa_handler == SIG_IGN)
			continue; /* it was ignored when we started: nohup */
		ret = catch_signal(e, wishes[i], &sa);
	}
	if (!ret)
		ret = start_watch(e);
	return ret;
}

/* ---- passing signals on ---- */

static volatile sig_atomic_t to_pid;
static int first_sig; /* the signal that came before there was a command */

/*
 * Signals of the terminal (Ctrl-C, a new size) go to its whole foreground group, and so to the
 * command as well. Therefore only a signal that a process sent to us is passed on.
 */
static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE ||
	       sig == SIGABRT || sig == SIGTRAP || sig == SIGSYS;
}

/* Is this a fault of our own, or our own abort(), and not sent by another process? */
static bool is_own(int sig, const siginfo_t *si)
{
	return is_fault(sig) && (si->si_code > 0 || si->si_pid == getpid());
}

static void on_passed(int sig, siginfo_t *si, void *context)
{
	int saved = errno;

	(void)context;
	if (is_own(sig, si)) {
		signal(sig, SIG_DFL);
		raise(sig);
	} else if (to_pid > 0) {
		if (si->si_code == SI_QUEUE)
			(void)sigqueue(to_pid, sig, si->si_value);
		else if (si->si_code != SI_KERNEL)
			kill(to_pid, sig);
		if (sig == SIGTSTP) /* whoever waits for us sees us stop, as without a handler */
			raise(SIGSTOP);
	} else if (sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT) {
		if (!asked)
			first_sig = sig;
		on_signal(sig);
	}
	errno = saved;
}

/*
 * Is this signal passed on? Not those that cannot be caught, and not those about our own files,
 * terminal and children.
 */
static bool to_pass(int sig)
{
	static const int not [] = { SIGKILL, SIGSTOP, SIGCHLD, SIGPIPE, SIGXFSZ, SIGTTIN, SIGTTOU };

	for (size_t i = 0; i < ARRAY_LEN(not ); i++)
		if (sig == not [i])
			return false;
	return sig < 32 || sig >= SIGRTMIN; /* those between belong to the C library */
}

int stop_init_passing(struct err *e)
{
	struct sigaction sa = { .sa_sigaction = on_passed, .sa_flags = SA_RESTART | SA_SIGINFO };
	int ret = make_wish_fd(e);

	sigfillset(&sa.sa_mask);
	for (int sig = 1; !ret && sig <= SIGRTMAX; sig++)
		if (to_pass(sig))
			ret = catch_signal(e, sig, &sa);
	return ret;
}

void stop_pass_to(pid_t pid)
{
	uint64_t n;

	to_pid = pid;
	if (pid > 0 && asked) { /* the signal came before there was a command */
		asked = 0;
		(void)!read(wish_fd, &n, sizeof(n));
		kill(pid, first_sig);
	}
}

void stop_at_once(bool yes)
{
	at_once_pid = yes ? getpid() : 0;
	if (yes && asked)
		end_at_once();
}

int stop_fd(void)
{
	return wish_fd;
}

uint64_t stop_asked_ms(void)
{
	return asked ? first_ms : 0;
}
