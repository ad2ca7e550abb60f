/* PMIx: the level of the interface that these headers describe. PMIx_Get_version() returns the version of the library in use. */
#ifndef PMIX_VERSION_H
#define PMIX_VERSION_H

#define PMIX_VERSION_MAJOR   6
#define PMIX_VERSION_MINOR   1
#define PMIX_VERSION_RELEASE 1
#define PMIX_NUMERIC_VERSION 0x00060101

/* Each is defined if the library has the capability; its value means nothing. */
#define PMIX_CAP_BASE            0
#define PMIX_CAP_LTO             1
#define PMIX_CAP_INMEMHELP       2
#define PMIX_CAP_UPCALLS2        3
#define PMIX_CAP_STOP_PRGTHRD    4
#define PMIX_CAP_GET_NUMBER_FN   5
#define PMIX_CAP_REGEX2          6
/* The same three in all releases: others have no bit here. */
#define PMIX_CAPABILITIES        (PMIX_CAP_BASE | PMIX_CAP_LTO | PMIX_CAP_INMEMHELP)

#endif
