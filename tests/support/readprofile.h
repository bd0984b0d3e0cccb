/* tests/support/readprofile.h - pprof files read back, for the tests of what was written. */
#ifndef TESTS_READPROFILE_H
#define TESTS_READPROFILE_H

#include "profile.pb-c.h"
#include "profile/profile.h"

/* NULL when @path is no gzipped profile; free with goprof__pprof__profile__free_unpacked. */
Goprof__Pprof__Profile *readprofile_unpack(const char *path);

/* The same as a profile of ours. Trusts the file's ids: they are checked by assert() only. */
int readprofile(const char *path, struct prof **out, struct err *e);

#endif
