/* PMIx: the macros that programs use, as calls of the functions that replace them. */
#ifndef PMIX_DEPRECATED_H
#define PMIX_DEPRECATED_H

#include <pmix.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PMIX_APP_CONSTRUCT(m)                              PMIx_App_construct(m)
#define PMIX_APP_CREATE(m, n)                              (m) = PMIx_App_create(n)
#define PMIX_APP_DESTRUCT(m)                               PMIx_App_destruct(m)
#define PMIX_APP_FREE(m, n)                                do { PMIx_App_free((m), (n)); (m) = NULL; } while (0)
#define PMIX_APP_INFO_CREATE(m, n)                         PMIx_App_info_create((m), (n))
#define PMIX_APP_RELEASE(m)                                do { PMIx_App_release(m); (m) = NULL; } while (0)

#define PMIX_ARGV_APPEND(r, a, b)                          (r) = PMIx_Argv_append_nosize(&(a), (b))
#define PMIX_ARGV_APPEND_UNIQUE(r, a, b)                   (r) = PMIx_Argv_append_unique_nosize((a), (b))
#define PMIX_ARGV_COPY(a, b)                               (a) = PMIx_Argv_copy(b)
#define PMIX_ARGV_COUNT(r, a)                              (r) = PMIx_Argv_count(a)
#define PMIX_ARGV_FREE(a)                                  PMIx_Argv_free(a)
#define PMIX_ARGV_JOIN(a, b, c)                            (a) = PMIx_Argv_join((b), (c))
#define PMIX_ARGV_PREPEND(r, a, b)                         (r) = PMIx_Argv_prepend_nosize(&(a), (b))
#define PMIX_ARGV_SPLIT(a, b, c)                           (a) = PMIx_Argv_split((b), (c))

#define PMIX_BYTE_OBJECT_CONSTRUCT(m)                      PMIx_Byte_object_construct(m)
#define PMIX_BYTE_OBJECT_CREATE(m, n)                      (m) = PMIx_Byte_object_create(n)
#define PMIX_BYTE_OBJECT_DESTRUCT(m)                       PMIx_Byte_object_destruct(m)
#define PMIX_BYTE_OBJECT_FREE(m, n)                        do { PMIx_Byte_object_free((m), (n)); (m) = NULL; } while (0)
#define PMIX_BYTE_OBJECT_LOAD(b, d, s)                     do { PMIx_Byte_object_load((b), (char *) (d), (s)); (d) = NULL; (s) = 0; } while (0)

#define PMIX_CHECK_BOOL(a)                                 ((a)->type == PMIX_BOOL ? PMIX_BOOL_TRUE == PMIx_Value_true(a) : false)
#define PMIX_CHECK_KEY(a, b)                               PMIx_Check_key((a)->key, (b))
#define PMIX_CHECK_NSPACE(a, b)                            PMIx_Check_nspace((a), (b))
#define PMIX_CHECK_PROCID(a, b)                            PMIx_Check_procid((a), (b))
#define PMIX_CHECK_RANK(a, b)                              PMIx_Check_rank((a), (b))
#define PMIX_CHECK_RESERVED_KEY(a)                         PMIx_Check_reserved_key(a)
#define PMIX_CHECK_TRUE(a)                                 (PMIX_BOOL_TRUE == PMIx_Value_true(a))

#define PMIX_COORD_CONSTRUCT(m)                            PMIx_Coord_construct(m)
#define PMIX_COORD_CREATE(m, n, d)                         (m) = PMIx_Coord_create((d), (n))
#define PMIX_COORD_DESTRUCT(m)                             PMIx_Coord_destruct(m)
#define PMIX_COORD_FREE(m, n)                              do { PMIx_Coord_free((m), (n)); (m) = NULL; } while (0)

#define PMIX_CPUSET_CONSTRUCT(m)                           PMIx_Cpuset_construct(m)
#define PMIX_CPUSET_CREATE(m, n)                           (m) = PMIx_Cpuset_create(n)
#define PMIX_CPUSET_DESTRUCT(m)                            PMIx_Cpuset_destruct(m)
#define PMIX_CPUSET_FREE(m, n)                             do { PMIx_Cpuset_free((m), (n)); (m) = NULL; } while (0)

#define PMIX_DATA_ARRAY_CONSTRUCT(m, n, t)                 PMIx_Data_array_construct((m), (n), (t))
#define PMIX_DATA_ARRAY_CREATE(m, n, t)                    (m) = PMIx_Data_array_create((n), (t))
#define PMIX_DATA_ARRAY_DESTRUCT(m)                        PMIx_Data_array_destruct(m)
#define PMIX_DATA_ARRAY_FREE(m)                            do { PMIx_Data_array_free(m); (m) = NULL; } while (0)
#define PMIX_DATA_ARRAY_INIT(m, t)                         PMIx_Data_array_init((m), (t))
#define PMIX_DATA_BUFFER_CONSTRUCT(m)                      PMIx_Data_buffer_construct(m)
#define PMIX_DATA_BUFFER_CREATE(m)                         (m) = PMIx_Data_buffer_create()
#define PMIX_DATA_BUFFER_DESTRUCT(m)                       PMIx_Data_buffer_destruct(m)
#define PMIX_DATA_BUFFER_LOAD(b, d, s)                     do { PMIx_Data_buffer_load((b), (char *) (d), (s)); (d) = NULL; (s) = 0; } while (0)
#define PMIX_DATA_BUFFER_RELEASE(m)                        do { PMIx_Data_buffer_release(m); (m) = NULL; } while (0)
#define PMIX_DATA_BUFFER_UNLOAD(b, d, s)                   PMIx_Data_buffer_unload((b), (char **) &(d), &(s))

#define PMIX_DEVICE_CONSTRUCT(m)                           PMIx_Device_construct(m)
#define PMIX_DEVICE_CREATE(m, n)                           (m) = PMIx_Device_create(n)
#define PMIX_DEVICE_DESTRUCT(m)                            PMIx_Device_destruct(m)
#define PMIX_DEVICE_DIST_CONSTRUCT(m)                      PMIx_Device_distance_construct(m)
#define PMIX_DEVICE_DIST_CREATE(m, n)                      (m) = PMIx_Device_distance_create(n)
#define PMIX_DEVICE_DIST_DESTRUCT(m)                       PMIx_Device_distance_destruct(m)
#define PMIX_DEVICE_DIST_FREE(m, n)                        do { PMIx_Device_distance_free((m), (n)); (m) = NULL; } while (0)
#define PMIX_DEVICE_FREE(m, n)                             do { PMIx_Device_free((m), (n)); (m) = NULL; } while (0)

#define PMIX_DISK_STATS_CONSTRUCT(m)                       PMIx_Disk_stats_construct(m)
#define PMIX_DISK_STATS_CREATE(m, n)                       (m) = PMIx_Disk_stats_create(n)
#define PMIX_DISK_STATS_DESTRUCT(m)                        PMIx_Disk_stats_destruct(m)
#define PMIX_DISK_STATS_FREE(m, n)                         do { PMIx_Disk_stats_free((m), (n)); (m) = NULL; } while (0)
#define PMIX_DISK_STATS_RELEASE(m)                         do { PMIx_Disk_stats_free((m), 1); (m) = NULL; } while (0)

#define PMIX_ENDPOINT_CONSTRUCT(m)                         PMIx_Endpoint_construct(m)
#define PMIX_ENDPOINT_CREATE(m, n)                         (m) = PMIx_Endpoint_create(n)
#define PMIX_ENDPOINT_DESTRUCT(m)                          PMIx_Endpoint_destruct(m)
#define PMIX_ENDPOINT_FREE(m, n)                           do { PMIx_Endpoint_free((m), (n)); (m) = NULL; } while (0)

#define PMIX_ENVAR_CONSTRUCT(m)                            PMIx_Envar_construct(m)
#define PMIX_ENVAR_CREATE(m, n)                            (m) = PMIx_Envar_create(n)
#define PMIX_ENVAR_DESTRUCT(m)                             PMIx_Envar_destruct(m)
#define PMIX_ENVAR_FREE(m, n)                              do { PMIx_Envar_free((m), (n)); (m) = NULL; } while (0)
#define PMIX_ENVAR_LOAD(m, e, v, s)                        PMIx_Envar_load((m), (e), (v), (s))

#define PMIX_GEOMETRY_CONSTRUCT(m)                         PMIx_Geometry_construct(m)
#define PMIX_GEOMETRY_CREATE(m, n)                         (m) = PMIx_Geometry_create(n)
#define PMIX_GEOMETRY_DESTRUCT(m)                          PMIx_Geometry_destruct(m)
#define PMIX_GEOMETRY_FREE(m, n)                           do { PMIx_Geometry_free((m), (n)); (m) = NULL; } while (0)

#define PMIX_INFO_CONSTRUCT(m)                             PMIx_Info_construct(m)
#define PMIX_INFO_CREATE(m, n)                             (m) = PMIx_Info_create(n)
#define PMIX_INFO_DESTRUCT(m)                              PMIx_Info_destruct(m)
#define PMIX_INFO_FREE(m, n)                               do { PMIx_Info_free((m), (n)); (m) = NULL; } while (0)
#define PMIX_INFO_IS_END(m)                                PMIx_Info_is_end(m)
#define PMIX_INFO_IS_OPTIONAL(m)                           PMIx_Info_is_optional(m)
#define PMIX_INFO_IS_PERSISTENT(ii)                        PMIx_Info_is_persistent(ii)
#define PMIX_INFO_IS_QUALIFIER(i)                          PMIx_Info_is_qualifier(i)
#define PMIX_INFO_IS_REQUIRED(m)                           PMIx_Info_is_required(m)
#define PMIX_INFO_LIST_ADD(r, p, a, v, t)                  (r) = PMIx_Info_list_add((p), (a), (v), (t))
#define PMIX_INFO_LIST_CONVERT(r, p, m)                    (r) = PMIx_Info_list_convert((p), (m))
#define PMIX_INFO_LIST_INSERT(r, p, i)                     (r) = PMIx_Info_list_insert((p), (i))
#define PMIX_INFO_LIST_PREPEND(r, p, a, v, t)              (r) = PMIx_Info_list_prepend((p), (a), (v), (t))
#define PMIX_INFO_LIST_RELEASE(p)                          PMIx_Info_list_release(p)
#define PMIX_INFO_LIST_START(p)                            (p) = PMIx_Info_list_start()
#define PMIX_INFO_LIST_XFER(r, p, a)                       (r) = PMIx_Info_list_xfer((p), (a))
#define PMIX_INFO_LOAD(i, k, d, t)                         PMIx_Info_load((i), (k), (d), (t))
#define PMIX_INFO_OPTIONAL(m)                              PMIx_Info_optional(m)
#define PMIX_INFO_PROCESSED(m)                             PMIx_Info_processed(m)
#define PMIX_INFO_REQUIRED(m)                              PMIx_Info_required(m)
#define PMIX_INFO_SET_END(m)                               PMIx_Info_set_end(m)
#define PMIX_INFO_SET_PERSISTENT(ii)                       PMIx_Info_persistent(ii)
#define PMIX_INFO_SET_QUALIFIER(i)                         PMIx_Info_qualifier(i)
#define PMIX_INFO_TRUE(m)                                  (PMIX_BOOL_TRUE == PMIx_Info_true(m))
#define PMIX_INFO_WAS_PROCESSED(m)                         PMIx_Info_was_processed(m)
#define PMIX_INFO_XFER(d, s)                               PMIx_Info_xfer((d), (s))

#define PMIX_LOAD_KEY(a, b)                                PMIx_Load_key((a), (b))
#define PMIX_LOAD_NSPACE(a, b)                             PMIx_Load_nspace((a), (b))
#define PMIX_LOAD_PROCID(a, b, c)                          PMIx_Load_procid((a), (b), (c))

#define PMIX_MULTICLUSTER_NSPACE_CONSTRUCT(t, c, n)        PMIx_Multicluster_nspace_construct((t), (c), (n))
#define PMIX_MULTICLUSTER_NSPACE_PARSE(t, c, n)            PMIx_Multicluster_nspace_parse((t), (c), (n))

#define PMIX_NET_STATS_CONSTRUCT(m)                        PMIx_Net_stats_construct(m)
#define PMIX_NET_STATS_CREATE(m, n)                        (m) = PMIx_Net_stats_create(n)
#define PMIX_NET_STATS_DESTRUCT(m)                         PMIx_Net_stats_destruct(m)
#define PMIX_NET_STATS_FREE(m, n)                          do { PMIx_Net_stats_free((m), (n)); (m) = NULL; } while (0)
#define PMIX_NET_STATS_RELEASE(m)                          do { PMIx_Net_stats_free((m), 1); (m) = NULL; } while (0)

#define PMIX_NODE_STATS_CONSTRUCT(m)                       PMIx_Node_stats_construct(m)
#define PMIX_NODE_STATS_CREATE(m, n)                       (m) = PMIx_Node_stats_create(n)
#define PMIX_NODE_STATS_DESTRUCT(m)                        PMIx_Node_stats_destruct(m)
#define PMIX_NODE_STATS_FREE(m, n)                         do { PMIx_Node_stats_free((m), (n)); (m) = NULL; } while (0)
#define PMIX_NODE_STATS_RELEASE(m)                         do { PMIx_Node_stats_free((m), 1); (m) = NULL; } while (0)

#define PMIX_NSPACE_INVALID(a)                             PMIx_Nspace_invalid(a)

#define PMIX_PDATA_CONSTRUCT(m)                            PMIx_Pdata_construct(m)
#define PMIX_PDATA_CREATE(m, n)                            (m) = PMIx_Pdata_create(n)
#define PMIX_PDATA_DESTRUCT(m)                             PMIx_Pdata_destruct(m)
#define PMIX_PDATA_FREE(m, n)                              do { PMIx_Pdata_free((m), (n)); (m) = NULL; } while (0)
#define PMIX_PDATA_LOAD(m, p, k, v, t)                     PMIx_Pdata_load((m), (p), (k), (v), (t))
#define PMIX_PDATA_RELEASE(m)                              do { PMIx_Pdata_free((m), 1); (m) = NULL; } while (0)
#define PMIX_PDATA_XFER(d, s)                              PMIx_Pdata_xfer((d), (s))

#define PMIX_PROCID_INVALID(a)                             PMIx_Procid_invalid(a)
#define PMIX_PROCID_XFER(a, b)                             PMIx_Xfer_procid((a), (b))

#define PMIX_PROC_CONSTRUCT(m)                             PMIx_Proc_construct(m)
#define PMIX_PROC_CREATE(m, n)                             (m) = PMIx_Proc_create(n)
#define PMIX_PROC_DESTRUCT(m)                              PMIx_Proc_destruct(m)
#define PMIX_PROC_FREE(m, n)                               do { PMIx_Proc_free((m), (n)); (m) = NULL; } while (0)
#define PMIX_PROC_INFO_CONSTRUCT(m)                        PMIx_Proc_info_construct(m)
#define PMIX_PROC_INFO_CREATE(m, n)                        (m) = PMIx_Proc_info_create(n)
#define PMIX_PROC_INFO_DESTRUCT(m)                         PMIx_Proc_info_destruct(m)
#define PMIX_PROC_INFO_FREE(m, n)                          do { PMIx_Proc_info_free((m), (n)); (m) = NULL; } while (0)
#define PMIX_PROC_INFO_RELEASE(m)                          do { PMIx_Proc_info_free((m), 1); (m) = NULL; } while (0)
#define PMIX_PROC_LOAD(m, n, r)                            PMIx_Proc_load((m), (n), (r))
#define PMIX_PROC_RELEASE(m)                               do { PMIx_Proc_free((m), 1); (m) = NULL; } while (0)
#define PMIX_PROC_STATS_CONSTRUCT(m)                       PMIx_Proc_stats_construct(m)
#define PMIX_PROC_STATS_CREATE(m, n)                       (m) = PMIx_Proc_stats_create(n)
#define PMIX_PROC_STATS_DESTRUCT(m)                        PMIx_Proc_stats_destruct(m)
#define PMIX_PROC_STATS_FREE(m, n)                         do { PMIx_Proc_stats_free((m), (n)); (m) = NULL; } while (0)
#define PMIX_PROC_STATS_RELEASE(m)                         do { PMIx_Proc_stats_free((m), 1); (m) = NULL; } while (0)

#define PMIX_QUERY_CONSTRUCT(m)                            PMIx_Query_construct(m)
#define PMIX_QUERY_CREATE(m, n)                            (m) = PMIx_Query_create(n)
#define PMIX_QUERY_DESTRUCT(m)                             PMIx_Query_destruct(m)
#define PMIX_QUERY_FREE(m, n)                              do { PMIx_Query_free((m), (n)); (m) = NULL; } while (0)
#define PMIX_QUERY_QUALIFIERS_CREATE(m, n)                 PMIx_Query_qualifiers_create((m), (n))
#define PMIX_QUERY_RELEASE(m)                              do { PMIx_Query_release(m); (m) = NULL; } while (0)

#define PMIX_REGATTR_CONSTRUCT(a)                          PMIx_Regattr_construct(a)
#define PMIX_REGATTR_CREATE(m, n)                          (m) = PMIx_Regattr_create(n)
#define PMIX_REGATTR_DESTRUCT(a)                           PMIx_Regattr_destruct(a)
#define PMIX_REGATTR_FREE(m, n)                            do { PMIx_Regattr_free((m), (n)); (m) = NULL; } while (0)
#define PMIX_REGATTR_LOAD(a, n, k, t, v)                   PMIx_Regattr_load((a), (n), (k), (t), (v))
#define PMIX_REGATTR_XFER(a, b)                            PMIx_Regattr_xfer((a), (b))

#define PMIX_RESOURCE_UNIT_CONSTRUCT(m)                    PMIx_Resource_unit_construct(m)
#define PMIX_RESOURCE_UNIT_CREATE(m, n)                    (m) = PMIx_Resource_unit_create(n)
#define PMIX_RESOURCE_UNIT_DESTRUCT(m)                     PMIx_Resource_unit_destruct(m)
#define PMIX_RESOURCE_UNIT_FREE(m, n)                      do { PMIx_Resource_unit_free((m), (n)); (m) = NULL; } while (0)

#define PMIX_SETENV(r, a, b, c)                            (r) = PMIx_Setenv((a), (b), true, (c))

#define PMIX_TOPOLOGY_CONSTRUCT(m)                         PMIx_Topology_construct(m)
#define PMIX_TOPOLOGY_CREATE(m, n)                         (m) = PMIx_Topology_create(n)
#define PMIX_TOPOLOGY_DESTRUCT(x)                          PMIx_Topology_destruct(x)
#define PMIX_TOPOLOGY_FREE(m, n)                           do { PMIx_Topology_free((m), (n)); (m) = NULL; } while (0)

#define PMIX_VALUE_CONSTRUCT(m)                            PMIx_Value_construct(m)
#define PMIX_VALUE_CREATE(m, n)                            (m) = PMIx_Value_create(n)
#define PMIX_VALUE_DESTRUCT(m)                             PMIx_Value_destruct(m)
#define PMIX_VALUE_FREE(m, n)                              do { PMIx_Value_free((m), (n)); (m) = NULL; } while (0)
#define PMIX_VALUE_LOAD(v, d, t)                           PMIx_Value_load((v), (d), (t))
#define PMIX_VALUE_RELEASE(m)                              do { PMIx_Value_free((m), 1); (m) = NULL; } while (0)
#define PMIX_VALUE_UNLOAD(r, k, d, s)                      (r) = PMIx_Value_unload((k), (void **) (d), (s))
#define PMIX_VALUE_XFER(r, v, s)                           (r) = PMIx_Value_xfer((v), (s))

#define PMIX_XFER_PROCID(a, b)                             PMIx_Xfer_procid((a), (b))

/* Takes the contents of `s` unchanged: nothing is copied, and `s` must not be destructed. */
#define PMIX_VALUE_XFER_DIRECT(r, v, s)                    do { *(v) = *(s); (r) = PMIX_SUCCESS; } while (0)

/* The number in a value of any numeric type, as the type `t`. */
#define PMIX_VALUE_GET_NUMBER(s, m, n, t)                                                                    \
    do {                                                                                                     \
        double pmix_number_ = 0;                                                                             \
        uint64_t pmix_unsigned_ = 0;                                                                         \
        int64_t pmix_signed_ = 0;                                                                            \
        if (PMIX_SUCCESS == ((s) = PMIx_Value_get_number((m), &pmix_unsigned_, PMIX_UINT64))) {              \
            (n) = (t) pmix_unsigned_;                                                                        \
        } else if (PMIX_SUCCESS == ((s) = PMIx_Value_get_number((m), &pmix_signed_, PMIX_INT64))) {          \
            (n) = (t) pmix_signed_;                                                                          \
        } else if (PMIX_SUCCESS == ((s) = PMIx_Value_get_number((m), &pmix_number_, PMIX_DOUBLE))) {         \
            (n) = (t) pmix_number_;                                                                          \
        }                                                                                                    \
    } while (0)

#define PMIX_FABRIC_CONSTRUCT(f)                           memset((f), 0, sizeof(pmix_fabric_t))

/* What older headers defined as functions of their own. */
#define pmix_argv_append_nosize                            PMIx_Argv_append_nosize
#define pmix_argv_append_unique_nosize                     PMIx_Argv_append_unique_nosize
#define pmix_argv_copy                                     PMIx_Argv_copy
#define pmix_argv_count                                    PMIx_Argv_count
#define pmix_argv_free                                     PMIx_Argv_free
#define pmix_argv_join                                     PMIx_Argv_join
#define pmix_argv_prepend_nosize                           PMIx_Argv_prepend_nosize
#define pmix_argv_split                                    PMIx_Argv_split
#define pmix_argv_split_with_empty                         PMIx_Argv_split_with_empty
#define pmix_setenv                                        PMIx_Setenv

#ifdef __cplusplus
}
#endif

#endif
