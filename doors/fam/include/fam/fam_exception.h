/* Errors of OpenFAM's interface: the class that its calls throw. See fam(7). */
#ifndef OPENLAPI_FAM_EXCEPTION_H
#define OPENLAPI_FAM_EXCEPTION_H

#include <exception>
#include <string>

#include "fam/fam.h"

/* Programs for OpenFAM rely on it. */
using namespace std;

namespace openfam {

class Fam_Exception : public std::exception {
  public:
    /* FAM_ERR_UNKNOWN, with no text or with this one. */
    Fam_Exception();
    Fam_Exception(const char *msg);
    Fam_Exception(enum Fam_Error error, const char *msg);
    Fam_Exception(const Fam_Exception &other);
    Fam_Exception &operator=(const Fam_Exception &other);
    ~Fam_Exception() noexcept;

    /* The text, which lives as long as the exception. */
    virtual char const *fam_error_msg();
    /* A number of Fam_Error. */
    virtual int fam_error();
    virtual char const *what();
    using std::exception::what;

  protected:
    std::string famErrMsg;
    enum Fam_Error famErr;
};

} // namespace openfam

#endif
