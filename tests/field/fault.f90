! Task 1 is ended by a fault, in a program whose runtime has a handler for that (-fbacktrace, gfortran's default).
program fault
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    implicit none
    include 'lapif.h'
    integer :: handle, ierror, me
    type (LAPI_INFO_T), save :: info
    integer, pointer :: nowhere
    call lapi_init(handle, info, ierror)
    if (ierror /= LAPI_SUCCESS) stop 9
    call lapi_qenv(handle, TASK_ID, me, ierror)
    call c_f_pointer(transfer(64_8, mold()), nowhere)
    if (me == 1) nowhere = 1
    call lapi_gfence(handle, ierror)
    call lapi_term(handle, ierror)
contains
    type (c_ptr) function mold()
        use, intrinsic :: iso_c_binding, only: c_null_ptr
        mold = c_null_ptr
    end function
end program
