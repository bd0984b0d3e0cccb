/* user/base/banned.h - functions that have hurt others; included by base/err.h, thus everywhere. */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok gets

#endif
