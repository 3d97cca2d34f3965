#ifndef TRIM_H
#define TRIM_H

/* Removes spaces at both ends of a text, in place. */
void trim(char *text);

#endif
