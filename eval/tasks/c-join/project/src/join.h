#ifndef JOIN_H
#define JOIN_H

#include <stddef.h>

/* Joins two texts with a slash into `out`, which has room for `size` bytes. Returns the length. */
int join(char *out, size_t size, const char *first, const char *second);

#endif
