#ifndef HEX_H
#define HEX_H

/* The value of a hexadecimal digit, or -1. */
int hex_value(char digit);

#endif
