// Fam_Exception.
#include "fam/fam_exception.h"

namespace openfam {

Fam_Exception::Fam_Exception() : Fam_Exception(FAM_ERR_UNKNOWN, nullptr) {}

Fam_Exception::Fam_Exception(const char *msg) : Fam_Exception(FAM_ERR_UNKNOWN, msg) {}

Fam_Exception::Fam_Exception(enum Fam_Error error, const char *msg)
    : famErrMsg(msg ? msg : ""), famErr(error) {}

Fam_Exception::Fam_Exception(const Fam_Exception &other) = default;

Fam_Exception &Fam_Exception::operator=(const Fam_Exception &other) = default;

Fam_Exception::~Fam_Exception() noexcept = default;

char const *Fam_Exception::fam_error_msg() { return famErrMsg.c_str(); }

int Fam_Exception::fam_error() { return famErr; }

char const *Fam_Exception::what() { return fam_error_msg(); }

} // namespace openfam
