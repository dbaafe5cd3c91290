// What the C interface is made of: calls of the class, whose exceptions become numbers.
#ifndef OPENLAPI_FAM_SHIM_C_H
#define OPENLAPI_FAM_SHIM_C_H

#include "fam/fam_c.h"
#include "fam/fam_exception.h"

namespace openfam {

// Keeps what a call has thrown, for c_fam_error and c_fam_error_msg.
void keep(int code, const char *text) noexcept;

// Runs a call; whether it has thrown nothing.
template <typename Call> bool tried(Call call) noexcept {
    try {
        call();
        return true;
    } catch (Fam_Exception &error) {
        keep(error.fam_error(), error.fam_error_msg());
    } catch (std::exception &error) {
        keep(FAM_ERR_RESOURCE, error.what());
    }
    return false;
}

// 0, or -1 where a call throws.
template <typename Call> int status(Call call) noexcept { return tried(call) ? 0 : -1; }

// What a call returns, or NULL where it throws.
template <typename Call> auto made(Call call) noexcept -> decltype(call()) {
    decltype(call()) result = nullptr;
    return tried([&] { result = call(); }) ? result : nullptr;
}

inline fam *object(c_fam *given) {
    if (!given)
        throw Fam_Exception(FAM_ERR_INVALID, "the fam object is NULL");
    return static_cast<fam *>(given);
}

inline Fam_Descriptor *item(c_fam_desc *given) { return static_cast<Fam_Descriptor *>(given); }

inline Fam_Region_Descriptor *region(c_fam_region_desc *given) {
    return static_cast<Fam_Region_Descriptor *>(given);
}

} // namespace openfam

#endif
