/* user/base/nofile.h - how many files this process may open. */
#ifndef BASE_NOFILE_H
#define BASE_NOFILE_H

/* Raises the limit as far as is allowed without a privilege. */
void nofile_raise(void);

#endif
