/* user/ingest/ahead.c - a ring of pieces: one is looked at, and others are read. */
#include "ingest/ahead.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* WAKE: so many pieces are free when the thread is woken, since waking takes time. */
enum { PIECES = 4, WAKE = 2 };

struct piece {
	uint8_t *at; /* AHEAD_ROOM, and behind it AHEAD_PIECE bytes */
	ssize_t n;   /* of them that were read; 0: the file ended; < 0: an errno */
};

struct ahead {
	int fd;
	pthread_t thread;
	struct piece pieces[PIECES];
	/* under the lock: */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t off;	    /* of the next piece that is read */
	uint64_t next;	    /* of the next one that is asked for */
	size_t first, full; /* in the ring: read, and not asked for yet */
	bool used;	    /* the one before them is looked at */
	bool reading, sought, ended, stop;
};

static ssize_t read_piece(int fd, uint8_t *to, uint64_t off)
{
	size_t n = 0;

	while (n < AHEAD_PIECE) {
		ssize_t got = pread(fd, to + n, AHEAD_PIECE - n, (off_t)(off + n));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && !n)
			return -errno;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return (ssize_t)n;
}

static size_t free_pieces(const struct ahead *a)
{
	return PIECES - a->full - a->used;
}

/* Under the lock, but while it reads. What was read in vain, since another place is asked for, is forgotten. */
static void read_one(struct ahead *a)
{
	struct piece *p = &a->pieces[(a->first + a->full) % PIECES];
	uint64_t off = a->off;
	ssize_t n;

	a->reading = true;
	pthread_mutex_unlock(&a->lock);
	n = read_piece(a->fd, p->at + AHEAD_ROOM, off);
	pthread_mutex_lock(&a->lock);
	a->reading = false;
	if (!a->sought) {
		p->n = n;
		a->full++;
		a->off += n > 0 ? (uint64_t)n : 0;
		a->ended = n <= 0;
	}
	pthread_cond_broadcast(&a->changed);
}

static void *work(void *arg)
{
	struct ahead *a = arg;

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		if (!a->sought && !a->ended && free_pieces(a))
			read_one(a);
		else
			pthread_cond_wait(&a->changed, &a->lock);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* Signals are for the thread that waits for them. */
static bool start(struct ahead *a)
{
	sigset_t all, before;
	bool ok;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ok = !pthread_create(&a->thread, NULL, work, a);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ok;
}

static void release(struct ahead *a)
{
	for (size_t i = 0; i < PIECES; i++)
		free(a->pieces[i].at);
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->changed);
	free(a);
}

struct ahead *ahead_new(int fd)
{
	struct ahead *a = calloc(1, sizeof(*a));
	bool ok = a;

	if (!a)
		return NULL;
	a->fd = fd;
	a->ended = true; /* nothing is asked for */
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	for (size_t i = 0; i < PIECES; i++) {
		a->pieces[i].at = malloc(AHEAD_ROOM + AHEAD_PIECE);
		ok = ok && a->pieces[i].at;
	}
	if (ok && start(a))
		return a;
	release(a);
	return NULL;
}

void ahead_free(struct ahead *a)
{
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	release(a);
}

/* Under the lock, as all that follow. */
static void seek(struct ahead *a, uint64_t off)
{
	a->sought = true;
	while (a->reading)
		pthread_cond_wait(&a->changed, &a->lock);
	a->full = 0;
	a->off = a->next = off;
	a->sought = a->ended = false;
	pthread_cond_broadcast(&a->changed);
}

static struct piece *await_piece(struct ahead *a)
{
	while (!a->full)
		pthread_cond_wait(&a->changed, &a->lock);
	return &a->pieces[a->first];
}

static void use_piece(struct ahead *a)
{
	a->next += (uint64_t)a->pieces[a->first].n;
	a->first = (a->first + 1) % PIECES;
	a->full--;
	a->used = true;
	if (free_pieces(a) >= WAKE)
		pthread_cond_broadcast(&a->changed);
}

ssize_t ahead_next(struct ahead *a, uint64_t off, const uint8_t *tail, size_t ntail, uint8_t **to)
{
	struct piece *p;
	ssize_t n;

	BUG_ON(ntail > AHEAD_ROOM);
	pthread_mutex_lock(&a->lock);
	if (off != a->next || (a->ended && !a->full))
		seek(a, off);
	p = await_piece(a);
	n = p->n;
	if (n > 0) {
		*to = p->at + AHEAD_ROOM;
		if (ntail)
			memcpy(*to - ntail, tail, ntail);
		use_piece(a);
	} else {
		a->full = 0;
	}
	pthread_mutex_unlock(&a->lock);
	return n;
}
