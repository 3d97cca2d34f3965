#ifndef LEAP_H
#define LEAP_H

/* Whether a year of the Gregorian calendar has 366 days. */
int is_leap(int year);

/* The days of a month from 1 to 12; 0 for any other month. */
int days_in_month(int year, int month);

#endif
