/* user/subject/subject.h - one target, understood: what the collectors share. */
#ifndef SUBJECT_SUBJECT_H
#define SUBJECT_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "arch/arch.h"
#include "base/map.h"
#include "go/image/gobin.h"
#include "go/layout/layout.h"
#include "go/runtime/vars/rtvar.h"
#include "subject/images.h"
#include "subject/open.h"
#include "target/host/bystanders.h"
#include "target/target.h"

struct sched;
struct budget;
struct attacher_process;

struct subject {
	struct target *target;
	struct images images;
	struct gobin *bin; /* that of images.at[0], which has the runtime; and its bias */
	uint64_t bias;
	struct golayout layout;
	struct attacher_process **attachers,
		*own_attachers; /* where those are that keep its probes (probe/uprobes/attacher.h); its own */
	struct budget *budget; /* sampling/windows/budget.h; NULL while nothing is probed */
	struct sched *sched; /* collect/waits/contention/sched.h; NULL while no profile needs it */
	uint64_t vdso_lo, vdso_hi;    /* live; 0 when there is none */
	char comm[32];		      /* safe in a file name */
	bool plugins, plugins_known;  /* it can load plugins */
	struct bystanders bystanders; /* others that run images.at[0]; counted when it is probed */
	bool healed;		      /* of what was left in its code, before the first probe */
	size_t leftovers;	      /* of many: breakpoints that were there; */
	bool not_searched;	      /* it, or a part of it, was not looked at */
	size_t probed;	      /* so many images were probed, and the kernel did not take too long */
	bool exposed_told;    /* said: the OOM killer does not spare the helpers */
	uint64_t refreshed_s; /* when plugins were last looked for; monotonic */
};

/* Prints a line for the person who waits; printf-like; does nothing when nobody listens. */
void say(const struct collect_opts *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* With -v, once for a target: @helper ("the guardian") is not spared by the OOM killer. */
void say_exposed(struct subject *s, const struct collect_opts *o, const char *helper);

/*
 * The live address of a variable of the runtime, if the value there can be its value.
 * -ENOENT, -EBADMSG, -EFAULT, -ESRCH.
 */
int subject_rtvar(struct subject *s, enum rtvar v, uint64_t *addr, struct err *e);

/* Path of an image's file, for the kernel; it is valid in this process only. */
enum { SUBJECT_PATH = 64 };
const char *image_path(const struct image *img, char buf[SUBJECT_PATH]);

static inline enum arch_id subject_machine(const struct subject *s)
{
	return gobin_info(s->bin)->arch;
}

/*
 * The physical function at the live address @pc (link-time addresses), and the image that it
 * belongs to.
 */
int subject_func(struct subject *s, uint64_t pc, struct gofunc *f, const struct image **img);
/* Its name, borrowed from the subject; NULL where there is none. */
const char *subject_func_name(struct subject *s, uint64_t pc);

/*
 * The logical frames at the live address @pc, innermost first, including wrappers; parent_pc is a
 * live address, too. Returns their number, -ENOENT outside of Go text.
 */
int subject_frames(struct subject *s, uint64_t pc, struct goframe *f, size_t cap, struct err *e);

/*
 * Go elides a wrapper frame unless it was entered to panic. Source: runtime/traceback.go,
 * elideWrapperCalling. @callee is the function that it called (FUNC_NORMAL at the leaf).
 */
bool frame_elided(enum func_id id, enum func_id callee);

#endif
