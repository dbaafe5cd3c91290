! A shared object with variables of lapif.h of its own: what it gives for LAPI_ADDR_NULL is nothing,
! and LAPI_BYTE has a value.
subroutine start(hndl) bind(C)
  use, intrinsic :: iso_c_binding
  implicit none
  include 'lapif.h'
  integer(c_int) :: hndl
  integer :: ierror
  type(LAPI_INFO_T) :: info
  call LAPI_INIT(hndl, info, ierror)
  if (ierror /= LAPI_SUCCESS) stop 1
end subroutine start

! 0, or what is wrong.
function check(hndl) bind(C)
  use, intrinsic :: iso_c_binding
  implicit none
  include 'lapif.h'
  integer(c_int) :: hndl, check
  integer :: ierror
  integer, volatile :: from, to
  integer(KIND=LAPI_ADDR_TYPE) :: place
  from = 17
  to = 0
  check = 0
  call LAPI_ADDRESS(to, place, ierror)
  call LAPI_PUT(hndl, 0, 4_LAPI_LONG_TYPE, place, from, 0_LAPI_ADDR_TYPE, LAPI_ADDR_NULL, LAPI_ADDR_NULL, ierror)
  if (ierror /= LAPI_SUCCESS) check = 2
  call LAPI_FENCE(hndl, ierror)
  if (ierror /= LAPI_SUCCESS) check = 3
  if (to /= 17) check = 4
  if (LAPI_ADDR_NULL /= 0) check = 5
  if (LAPI_BYTE == 0) check = 6
end function check
