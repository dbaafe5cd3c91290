// What C++ can ask of a type: lapi_query_t and the like are enumerations, handlers are function types, counters and
// structures can be zeroed and copied as bytes.
#include <lapi.h>
#include <type_traits>

template <typename... Types> struct enums;
template <> struct enums<> {
  static constexpr bool value = true;
};
template <typename First, typename... Rest> struct enums<First, Rest...> {
  static constexpr bool value = std::is_enum<First>::value && enums<Rest...>::value;
};
static_assert(enums<lapi_query_t, RMW_ops_t, lapi_err_t, lapi_lib_t, lapi_dev_t, css_dev_t, lapi_vectype_t,
                    lapi_xfer_type_t, lapi_util_type_t, lapi_usr_fcall_t, lapi_dgsm_opcode_t, lapi_dgsp_density_t,
                    lapi_ctl_flags_t>::value,
              "enumerations");

template <typename... Types> struct functions;
template <> struct functions<> {
  static constexpr bool value = true;
};
template <typename First, typename... Rest> struct functions<First, Rest...> {
  static constexpr bool value = std::is_function<First>::value && functions<Rest...>::value;
};
static_assert(functions<hdr_hndlr_t, vhdr_hndlr_t, compl_hndlr_t, scompl_hndlr_t, LAPI_err_hndlr, ddm_func_t,
                        udp_init_hndlr>::value,
              "function types");

static_assert(std::is_same<decltype(lapi_info_t::err_hndlr), LAPI_err_hndlr *>::value, "err_hndlr");
static_assert(std::is_same<decltype(lapi_info_t::lapi_thread_attr), com_thread_info_t *>::value, "thread_attr");
static_assert(std::is_same<decltype(lapi_extend_t::udp_hndlr), udp_init_hndlr *>::value, "udp_hndlr");
static_assert(std::is_same<decltype(lapi_am_t::shdlr), scompl_hndlr_t *>::value, "shdlr");
static_assert(std::is_same<decltype(lapi_get_t::chndlr), compl_hndlr_t *>::value, "chndlr");
static_assert(std::is_same<decltype(lapi_reg_ddm_t::ddm_func), ddm_func_t *>::value, "ddm_func");
static_assert(std::is_same<decltype(lapi_rmw_t::op), RMW_ops_t>::value, "op");
static_assert(std::is_same<decltype(lapi_lvec_t::info), lapi_long_t *>::value, "info");
static_assert(std::is_same<decltype(lapi_dgsm_copy_t::opcode), lapi_dgsm_opcode_t>::value, "opcode");
static_assert(std::is_same<lapi_dg_handle_t, lapi_dgsp_descr_t *>::value, "a handle can be read through");

static_assert(std::is_trivial<lapi_cntr_t>::value && std::is_standard_layout<lapi_cntr_t>::value, "counter");
static_assert(std::is_trivial<lapi_xfer_t>::value && std::is_trivial<lapi_util_t>::value, "unions");

extern "C" void *header_handler(lapi_handle_t *, void *, uint *, ulong *, compl_hndlr_t **, void **);
hdr_hndlr_t *handler = header_handler;
