/* Tools print these about the library that they are built on. Programs may set their own. */
#ifndef PMIX_GLOBALS_H
#define PMIX_GLOBALS_H

extern const char *PMIX_PROXY_VERSION;
extern const char *PMIX_PROXY_BUGREPORT;

#endif
