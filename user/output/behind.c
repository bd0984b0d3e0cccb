/* user/output/behind.c - two buffers, of which one is filled and one is written. */
#include "output/behind.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"

struct behind {
	FILE *f;
	uint8_t *buffers[2];
	int filled; /* the one that is being filled */
	atomic_int failed;
	bool threaded, started;
	pthread_t thread;
	/* under the lock, filled as well: */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t left; /* bytes of the other one that are to be written; 0: it is free */
	bool ended;
};

/* Only what cannot stand still: who waits for a pipe must hear of Ctrl-C. */
static bool is_regular(FILE *f)
{
	struct stat st;

	return fileno(f) >= 0 && !fstat(fileno(f), &st) && S_ISREG(st.st_mode);
}

int behind_new(FILE *f, size_t size, struct behind **out, struct err *e)
{
	CLEANUP(behind_freep) struct behind *b = calloc(1, sizeof(*b));

	if (!b)
		return err_set(e, -ENOMEM, "no memory");
	b->f = f;
	b->threaded = is_regular(f);
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->changed, NULL);
	for (int i = 0; i < 2; i++) {
		b->buffers[i] = malloc(size);
		if (!b->buffers[i])
			return err_set(e, -ENOMEM, "no memory");
	}
	*out = TAKE(b);
	return 0;
}

uint8_t *behind_buffer(struct behind *b)
{
	return b->buffers[b->filled];
}

int behind_failed(const struct behind *b)
{
	return b->failed;
}

static void write_one(struct behind *b, const uint8_t *p, size_t n)
{
	if (!b->failed && fwrite(p, 1, n, b->f) != n)
		b->failed = errno ? errno : EIO;
}

static void *work(void *arg)
{
	struct behind *b = arg;

	pthread_mutex_lock(&b->lock);
	for (;;) {
		const uint8_t *p = b->buffers[!b->filled];
		size_t n = b->left;

		if (n) {
			pthread_mutex_unlock(&b->lock);
			write_one(b, p, n);
			pthread_mutex_lock(&b->lock);
			b->left = 0;
			pthread_cond_broadcast(&b->changed);
		} else if (b->ended) {
			break;
		} else {
			pthread_cond_wait(&b->changed, &b->lock);
		}
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

/* Signals are for the thread that waits for them. */
static void start(struct behind *b)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	b->started = b->threaded = !pthread_create(&b->thread, NULL, work, b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Under the lock. */
static void wait_free(struct behind *b)
{
	while (b->left)
		pthread_cond_wait(&b->changed, &b->lock);
}

void behind_put(struct behind *b, size_t n)
{
	if (b->threaded && !b->started)
		start(b);
	if (!b->threaded) {
		write_one(b, b->buffers[b->filled], n);
		return;
	}
	pthread_mutex_lock(&b->lock);
	wait_free(b);
	b->filled = !b->filled;
	b->left = n;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

int behind_wait(struct behind *b)
{
	pthread_mutex_lock(&b->lock);
	wait_free(b);
	pthread_mutex_unlock(&b->lock);
	return b->failed;
}

void behind_free(struct behind *b)
{
	if (b->started) {
		pthread_mutex_lock(&b->lock);
		b->ended = true;
		pthread_cond_broadcast(&b->changed);
		pthread_mutex_unlock(&b->lock);
		pthread_join(b->thread, NULL);
	}
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	for (int i = 0; i < 2; i++)
		free(b->buffers[i]);
	free(b);
}
