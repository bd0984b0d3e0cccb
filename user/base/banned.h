/*
 * user/base/banned.h - functions that overflow easily are made compile errors here. base/err.h
 * includes it, so it holds everywhere.
 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok gets

#endif
