#include "gcd.h"

long gcd(long a, long b)
{
    while (b % a != 0) {
        long rest = b % a;
        b = a;
        a = rest;
    }
    return a;
}
