/*
 * user/base/limits.h - every bound on foreign input, in one place.
 *
 * Hitting one is an error (-E2BIG) or a counted loss, never silence.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

enum {
	LIMIT_STRING = 1 << 20,	       /* bytes of one interned string */
	LIMIT_STRINGS = 1 << 26,       /* interned strings of one table */
	LIMIT_SECTIONS = 1 << 16,      /* ELF section headers */
	LIMIT_SEGMENTS = 1 << 12,      /* ELF program headers */
	LIMIT_SYMBOLS = 1 << 24,       /* ELF symbols of one table */
	LIMIT_BUILDINFO = 1 << 22,     /* bytes of version + module text */
	LIMIT_FUNCS = 1 << 24,	       /* functions of one pclntab */
	LIMIT_NAME = 1 << 14,	       /* bytes of a function or file name */
	LIMIT_PCVALUE_STEPS = 1 << 20, /* runs of one pc-value table */
	LIMIT_INLINE_DEPTH = 256,      /* inlined calls at one pc */
	/* .debug_info, inflated, that is read for versions that the table knows as well */
	LIMIT_DWARF_BYTES = 1 << 20,
	LIMIT_DWARF_IMAGE = 512 << 20, /* of all sections that are read, inflated */
	LIMIT_DWARF_HEAP = 256 << 20,  /* what reading them may take beside that */
	LIMIT_TYPES = 1 << 21,	       /* types of one binary */
	LIMIT_TYPE_FIELDS = 1 << 23,   /* fields of all of them */
	LIMIT_TYPE_VARS = 1 << 22,     /* global variables, and variables in frames */
	LIMIT_TYPE_TEXT = 1 << 28,     /* bytes of their names */
	LIMIT_TYPES_MS = 60000,	       /* reading them */
	LIMIT_MAPS = 1 << 17,	       /* lines of /proc/PID/maps */
	LIMIT_MAPS_BYTES = 64 << 20,   /* bytes of it */
	/* pages of one mapping of code, when it is compared with its file */
	LIMIT_TEXT_PAGES = 1 << 20,
	LIMIT_LEFTOVERS = 1 << 16, /* breakpoints in one process */
	/*
	 * Looking for them: pages of mappings in one process, time for one process, for freeing
	 * those of one process, and for all processes of one call
	 */
	LIMIT_LEFTOVERS_PAGES = 1 << 22,
	LIMIT_LEFTOVERS_MS = 2000,
	LIMIT_FREE_MS = 20000,
	LIMIT_STAND_MS = 400, /* that leftovers are watched before they are freed */
	LIMIT_HEAL_MS = 30000,
	LIMIT_ATTACHER_MS = 60000, /* that the attacher of the probes may take for an answer */
	LIMIT_THREADS = 1 << 16,   /* threads of one target */
	/* pcs of one bucket: the maximum of profstackdepth, and two */
	LIMIT_BUCKET_STACK = 1026,
	LIMIT_BUCKETS = 1 << 22,    /* runtime buckets of one kind */
	LIMIT_BUCKET_PCS = 1 << 24, /* pcs of all buckets together */
	LIMIT_SURVEY = 1 << 16,	    /* Go processes, and distinct files, of one ps */
	/* of these files so many are kept from one look to the next, and so many copies, of so many bytes in all */
	LIMIT_SURVEY_KEPT = 1024,
	LIMIT_SURVEY_COPIES = 8,
	LIMIT_SURVEY_COPY_BYTES = 64 << 20,
	/* what asks a process and its files: without having run at all while it waits in the kernel */
	LIMIT_STUCK_MS = 1000,
	/* the same, where the process that is asked runs meanwhile: the holder of a lock may only lack a CPU */
	LIMIT_STUCK_BUSY_MS = 5000,
	/* in all: looking at one process, and how many may not answer; what a worker does (base/loop/worker.h) */
	LIMIT_LOOK_MS = 60000,
	LIMIT_UNANSWERED = 16,
	LIMIT_JOB_MS = 10000,
	/* for so long whoever asks a process reads its memory himself, after a worker could */
	LIMIT_ANSWERED_MS = 25,
	/* reading the memory of one target of many, in all, and beside that a share of the time that passes */
	LIMIT_ASKED_MS = 20000,
	LIMIT_ASKED_SHARE = 4, /* a quarter */
	LIMIT_COPY =
		256
		<< 20, /* bytes of a file that is copied because its file system may not answer */
	LIMIT_SURVEY_MEMORY = 1 << 30, /* bytes that looking at processes may take */
	LIMIT_CGROUP = 1 << 16,	       /* bytes of /proc/PID/cgroup */
	LIMIT_COMMAND = 1 << 17,       /* and of a command line that is matched */
	LIMIT_PS = 1 << 13,	       /* Ps: GOMAXPROCS */
	LIMIT_GOROUTINES = 1 << 24,    /* goroutines, dead ones included */
	LIMIT_G_BYTES = 1024,	       /* bytes of one runtime.g that are looked at */
	LIMIT_STACK_BYTES = 64 << 20,  /* bytes of one goroutine's stack, from its leaf */
	LIMIT_STACK_PAGES = 4 << 20,   /* pages of 4 KiB, of all deep stacks of one look */
	LIMIT_LABELS = 1024,	       /* labels of one goroutine */
	LIMIT_LABEL_BYTES = 1 << 20,   /* bytes of text of one goroutine's labels */
	LIMIT_LABELS_TEXT = 64 << 20,  /* text of the labels of 1,024 goroutines */
	LIMIT_TEXT_LINES = 1 << 24,    /* lines of a goroutine profile's text, roughly */
	LIMIT_LIVE_OBJECTS = 1 << 18,  /* sampled objects that are followed at once */
	LIMIT_LIVE_STACKS = 1 << 18,   /* distinct stacks that allocated them */
	LIMIT_LIVE_CELLS = 1 << 20,    /* pairs of such a stack and a group of windows */
	LIMIT_DECODE = 4096,	       /* bytes of one function that are decoded */
	LIMIT_TYPE_DEPTH = 16,	       /* nesting of a type that reflect made of others */
	/*
	 * Allocation sites of a heap dump, frames of all their stacks, and bytes of the names in
	 * them, where LIMIT_DUMP_LOCATION more are counted for each that is new
	 */
	LIMIT_DUMP_SITES = 1 << 17,
	LIMIT_DUMP_FRAMES = 1 << 21,
	LIMIT_DUMP_TEXT = 24 << 20,
	LIMIT_DUMP_LOCATION = 128,
	/* of a heap dump of Go 1.3 or 1.4: types, itabs, and places of pointers in all types */
	LIMIT_DUMP_TYPES = 1 << 17,
	LIMIT_DUMP_PLACES = 1 << 22,
	LIMIT_DUMP_ARGS = 1 << 16, /* bytes of a frame's arguments, behind what a dump has of it */
	LIMIT_DUMP_DEFERS = 1 << 20, /* deferred calls of a heap dump, of Go 1.17 or older */
	/* looking for who holds a lock: bytes of one fdinfo, files of one look, time of one look */
	LIMIT_FDINFO = 1 << 16,
	LIMIT_HOLDERS_FILES = 1 << 20,
	LIMIT_HOLDERS_MS = 1000,
	LIMIT_TRACE_TEXT = 1 << 30,  /* strings of one generation of an execution trace */
	LIMIT_TRACE_IDS = 1 << 26,   /* its strings, its stacks, and frames of all stacks */
	LIMIT_TRACE_NAMES = 1 << 28, /* names of its tasks and regions that go on */
	LIMIT_TRACE_STOPS = 64,	     /* of the world, by one goroutine, that go on */
	LIMIT_TRACE_NAME = 1 << 10,  /* bytes of a name, as it is shown */
	LIMIT_TRACE_STACK = 1 << 16, /* bytes of a stack, the same */
	LIMIT_TRACE_STEPS = 1 << 20, /* changes of mutator utilisation in one second */
	LIMIT_TRACE_KINDS = 1 << 11, /* kinds of tasks, of regions, of ranges */
	LIMIT_TRACE_REASONS = 256,   /* why goroutines wait */
	LIMIT_TRACE_TOLD = 1 << 16,  /* names that a Perfetto trace has before it tells them anew */
	LIMIT_TRACE_GROUPS = 1 << 16, /* functions that goroutines start in */
	LIMIT_STREAM_MS = 20000,      /* reading long ranges of one executable's file, in all */
	/*
	 * Of an executable that processes share (gobin_open_shared()): looking into it, for the file, and for each process more;
	 * then that share of all time. ns, as elfimg_work() counts them. And bytes
	 */
	LIMIT_FILE_WORK = 1500000000,
	LIMIT_FILE_WORK_EACH = 250000000,
	LIMIT_FILE_SHARE = 20,	     /* a twentieth */
	LIMIT_FILE_BYTES = 32 << 20, /* names of it */
	LIMIT_FILE_TABLES = 2 << 20, /* headers of its sections and segments */
};

#define LIMIT_SCAN_BYTES \
	(1ull << 30) /* one table or search; all of a Go program is at most 2 GiB */
#define LIMIT_STREAM_BYTES (1ull << 32) /* long ranges of one executable's file, in all */

#endif
