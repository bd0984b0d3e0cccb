/* user/base/version.h - the version of goprof-bpf; a build may give another one. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#ifndef GOPROF_VERSION
#define GOPROF_VERSION "0.1.0"
#endif

#endif
