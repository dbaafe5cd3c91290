/* What the parts of the program in C share. */
#ifndef OPENLAPI_FAM_PLAIN_H
#define OPENLAPI_FAM_PLAIN_H

#include <fam/fam_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program where a condition does not hold. */
#define CHECK(condition) ((condition) ? (void)0 : failed(__FILE__, __LINE__, #condition))
#define DONE(call) CHECK((call) == 0)
/* Ends the program where a call does not fail with this error, and a text. */
#define REFUSED(error, call) CHECK((call) == -1 && failed_by(error))
/* As REFUSED, of a call that returns a pointer. */
#define NOTHING(error, call) CHECK((call) == NULL && failed_by(error))

void failed(const char *file, int line, const char *what);
/* Whether this is the error of the thread's last failure. */
int failed_by(int error);

/* The initialized object. */
extern c_fam *pool;

/* Whether the bytes of an item at an offset are these. */
int has(c_fam_desc *one, uint64_t offset, const void *bytes, size_t length);

/* What is tested, in an item of zeros. */
void transfers(c_fam_desc *one);
void vectors(c_fam_desc *one);
void copies(c_fam_desc *one, c_fam_desc *other);
void maps(void);
void atomics(c_fam_desc *one);

#endif
