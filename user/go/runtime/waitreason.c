/* user/go/runtime/waitreason.c - wait reasons per Go version. */
#include "go/runtime/waitreason.h"

#include <string.h>

#include "base/cleanup.h"

/*
 * The numbers were assigned anew in 1.20, 1.24, 1.25 and 1.26; in between, numbers were only
 * added.
 */
static const char *const go1_15[] = {
	"",
	"GC assist marking",
	"IO wait",
	"chan receive (nil chan)",
	"chan send (nil chan)",
	"dumping heap",
	"garbage collection",
	"garbage collection scan",
	"panicwait",
	"select",
	"select (no cases)",
	"GC assist wait",
	"GC sweep wait",
	"GC scavenge wait",
	"chan receive",
	"chan send",
	"finalizer wait",
	"force gc (idle)",
	"semacquire",
	"sleep",
	"sync.Cond.Wait",
	"timer goroutine (idle)",
	"trace reader (blocked)",
	"wait for GC cycle",
	"GC worker (idle)",
	"preempted",
	"debug call",
};

static const char *const go1_20[] = {
	"",
	"GC assist marking",
	"IO wait",
	"chan receive (nil chan)",
	"chan send (nil chan)",
	"dumping heap",
	"garbage collection",
	"garbage collection scan",
	"panicwait",
	"select",
	"select (no cases)",
	"GC assist wait",
	"GC sweep wait",
	"GC scavenge wait",
	"chan receive",
	"chan send",
	"finalizer wait",
	"force gc (idle)",
	"semacquire",
	"sleep",
	"sync.Cond.Wait",
	"sync.Mutex.Lock",
	"sync.RWMutex.RLock",
	"sync.RWMutex.Lock",
	"trace reader (blocked)",
	"wait for GC cycle",
	"GC worker (idle)",
	"GC worker (active)",
	"preempted",
	"debug call",
	"GC mark termination",
	"stopping the world",
	"flushing proc caches",
	"trace goroutine status",
	"trace proc status",
	"page trace flush",
	"coroutine",
	"GC weak to strong wait",
};

static const char *const go1_24[] = {
	"",
	"GC assist marking",
	"IO wait",
	"chan receive (nil chan)",
	"chan send (nil chan)",
	"dumping heap",
	"garbage collection",
	"garbage collection scan",
	"panicwait",
	"select",
	"select (no cases)",
	"GC assist wait",
	"GC sweep wait",
	"GC scavenge wait",
	"chan receive",
	"chan send",
	"finalizer wait",
	"force gc (idle)",
	"semacquire",
	"sleep",
	"sync.Cond.Wait",
	"sync.Mutex.Lock",
	"sync.RWMutex.RLock",
	"sync.RWMutex.Lock",
	"sync.WaitGroup.Wait",
	"trace reader (blocked)",
	"wait for GC cycle",
	"GC worker (idle)",
	"GC worker (active)",
	"preempted",
	"debug call",
	"GC mark termination",
	"stopping the world",
	"flushing proc caches",
	"trace goroutine status",
	"trace proc status",
	"page trace flush",
	"coroutine",
	"GC weak to strong wait",
	"synctest.Run",
	"synctest.Wait",
	"chan receive (durable)",
	"chan send (durable)",
	"select (durable)",
};

static const char *const go1_25[] = {
	"",
	"GC assist marking",
	"IO wait",
	"chan receive (nil chan)",
	"chan send (nil chan)",
	"dumping heap",
	"garbage collection",
	"garbage collection scan",
	"panicwait",
	"select",
	"select (no cases)",
	"GC assist wait",
	"GC sweep wait",
	"GC scavenge wait",
	"chan receive",
	"chan send",
	"finalizer wait",
	"force gc (idle)",
	"GOMAXPROCS updater (idle)",
	"semacquire",
	"sleep",
	"sync.Cond.Wait",
	"sync.Mutex.Lock",
	"sync.RWMutex.RLock",
	"sync.RWMutex.Lock",
	"sync.WaitGroup.Wait",
	"trace reader (blocked)",
	"wait for GC cycle",
	"GC worker (idle)",
	"GC worker (active)",
	"preempted",
	"debug call",
	"GC mark termination",
	"stopping the world",
	"flushing proc caches",
	"trace goroutine status",
	"trace proc status",
	"page trace flush",
	"coroutine",
	"GC weak to strong wait",
	"synctest.Run",
	"synctest.Wait",
	"chan receive (durable)",
	"chan send (durable)",
	"select (durable)",
	"sync.WaitGroup.Wait (durable)",
	"cleanup wait",
};

static const char *const go1_26[] = {
	"",
	"GC assist marking",
	"IO wait",
	"dumping heap",
	"garbage collection",
	"garbage collection scan",
	"panicwait",
	"GC assist wait",
	"GC sweep wait",
	"GC scavenge wait",
	"finalizer wait",
	"force gc (idle)",
	"GOMAXPROCS updater (idle)",
	"semacquire",
	"sleep",
	"chan receive (nil chan)",
	"chan send (nil chan)",
	"select (no cases)",
	"select",
	"chan receive",
	"chan send",
	"sync.Cond.Wait",
	"sync.Mutex.Lock",
	"sync.RWMutex.RLock",
	"sync.RWMutex.Lock",
	"sync.WaitGroup.Wait",
	"trace reader (blocked)",
	"wait for GC cycle",
	"GC worker (idle)",
	"GC worker (active)",
	"preempted",
	"debug call",
	"GC mark termination",
	"stopping the world",
	"flushing proc caches",
	"trace goroutine status",
	"trace proc status",
	"page trace flush",
	"coroutine",
	"GC weak to strong wait",
	"synctest.Run",
	"synctest.Wait",
	"chan receive (durable)",
	"chan send (durable)",
	"select (durable)",
	"sync.WaitGroup.Wait (durable)",
	"cleanup wait",
};

/* Newest first: the first row applies whose version is not newer than the one asked for. */
static const struct {
	int minor;
	const char *const *names;
	unsigned n;
} versions[] = {
	{ 26, go1_26, ARRAY_LEN(go1_26) },
	{ 25, go1_25, ARRAY_LEN(go1_25) },
	{ 24, go1_24, ARRAY_LEN(go1_24) },
	{ 22, go1_20, 38 }, /* 37 came with a point release of 1.23 */
	{ 20, go1_20, 32 },
	{ 15, go1_15, ARRAY_LEN(go1_15) },
};

/* What Go 1.24 spelled differently. */
static const char *const spelt_124[][2] = {
	{ "chan receive (durable)", "chan receive (synctest)" },
	{ "chan send (durable)", "chan send (synctest)" },
	{ "select (durable)", "select (synctest)" },
};

const char *waitreason_name(int minor, unsigned value)
{
	size_t v = 0;

	while (minor >= 0 && v < ARRAY_LEN(versions) && versions[v].minor > minor)
		v++;
	if (v == ARRAY_LEN(versions) || value >= versions[v].n)
		return NULL;
	return versions[v].names[value];
}

int waitreason_value(int minor, const char *name)
{
	const char *have;

	for (int i = 0; (have = waitreason_name(minor, (unsigned)i)); i++)
		if (!strcmp(have, name))
			return i;
	return -1;
}

const char *waitreason_spelt(int minor, unsigned value)
{
	const char *name = waitreason_name(minor, value);

	for (size_t i = 0; name && minor == 24 && i < ARRAY_LEN(spelt_124); i++)
		if (!strcmp(name, spelt_124[i][0]))
			return spelt_124[i][1];
	return name;
}
