#ifndef GCD_H
#define GCD_H

/* The greatest common divisor, never negative. */
long gcd(long a, long b);

#endif
