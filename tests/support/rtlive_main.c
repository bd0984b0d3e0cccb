/*
 * tests/support/rtlive_main.c - prints the contents of a live process at the addresses of its
 * runtime variables.
 *
 * 	rtlive PID	a line per variable: NAME ADDRESS ok | NAME - why not
 *
 * The exit status is 1 when a variable was found whose value cannot be right.
 */
#include "subject/subject.h"
#include "go/runtime/vars/rtvar.h"

static bool look(struct subject *s, enum rtvar v)
{
	struct err e = { "" };
	uint64_t addr;

	if (rtvar_find(s->bin, v, &addr, &e)) {
		printf("%s - %s\n", rtvar_name(v), e.msg);
		return true;
	}
	addr += s->bias;
	if (rtvar_plausible(s->target->mem, &s->layout, gobin_info(s->bin)->minor, v, addr, &e)) {
		printf("%s 0x%llx %s\n", rtvar_name(v), (unsigned long long)addr, e.msg);
		return false;
	}
	printf("%s 0x%llx ok\n", rtvar_name(v), (unsigned long long)addr);
	return true;
}

int main(int argc, char **argv)
{
	CLEANUP(subject_freep) struct subject *s = NULL;
	struct collect_opts o = { .source = SOURCE_READ };
	struct err e = { "" };
	bool ok = true;

	if (argc != 2 || subject_open(atoi(argv[1]), &o, &s, &e)) {
		fprintf(stderr, "rtlive: %s\n", e.msg[0] ? e.msg : "usage: rtlive PID");
		return 1;
	}
	for (int v = 0; v < RTVAR_COUNT; v++)
		ok = look(s, (enum rtvar)v) && ok;
	return !ok;
}
