C     As the manual's hwinit.f, with calls that profilers watch; fixed form,
C     without implicit none, and in small letters.
      include 'lapif.h'
      integer :: handle
      integer :: info(25)
      integer :: ierror, i
      do i=1, 25
         info(i) = 0
      enddo
      call LAPI_INIT(handle, info, ierror)
      call LAPI_SENV(handle, ERROR_CHK, 1, ierror)
      call lapi_fence(handle, ierror)
      call Lapi_Gfence(handle, ierror)
      call LAPI_PROBE(handle, ierror)
      call LAPI_TERM(handle, ierror)
      call ft_ok(ierror, 'LAPI_TERM')
      call report()
      end
