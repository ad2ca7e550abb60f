/* PMIx: the level of the interface that these headers describe. What library is used tells PMIx_Get_version(). */
#ifndef PMIX_VERSION_H
#define PMIX_VERSION_H

#define PMIX_VERSION_MAJOR   6
#define PMIX_VERSION_MINOR   1
#define PMIX_VERSION_RELEASE 1
#define PMIX_NUMERIC_VERSION 0x00060101

#endif
