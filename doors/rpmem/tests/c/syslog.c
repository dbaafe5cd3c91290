/* Loaded before libc into the daemon: writes what goes to syslog to the file that SYSLOG names, the
 * priority first. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>

void syslog(int priority, const char *format, ...)
{
	const char *name = getenv("SYSLOG");
	FILE *log = name != NULL ? fopen(name, "a") : NULL;
	va_list arguments;

	if (log == NULL)
		abort();
	fprintf(log, "%d ", priority);
	va_start(arguments, format);
	vfprintf(log, format, arguments);
	va_end(arguments);
	fputc('\n', log);
	fclose(log);
}
