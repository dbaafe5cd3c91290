// The headers in C++, in the order that makes most trouble.
#include <fam/fam_c.h>

#include <fam/fam.h>
#include <fam/fam_exception.h>

int main() {
    // `using namespace std` is fam_exception.h's.
    string text = "text";
    openfam::Fam_Exception error(openfam::FAM_ERR_RPC, text.c_str());
    Fam_Error code = openfam::FAM_ERR_RPC;
    c_fam *one = c_fam_create();
    int initialized = c_fam_quiet(one);
    c_fam_delete(one);
    return error.fam_error() == code && initialized == -1 ? 0 : 1;
}
