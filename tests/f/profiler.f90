! A profiling routine in Fortran.
subroutine LAPI_PROBE(hndl, ierror)
  implicit none
  integer :: hndl, ierror
  call count_probe()
  call PLAPI_PROBE(hndl, ierror)
end subroutine LAPI_PROBE
