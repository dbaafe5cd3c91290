! A job that hangs, as dead.c: all tasks but the last are in LAPI_GFENCE, and the last never enters it.
program dead
  implicit none
  include 'lapif.h'
  type (LAPI_INFO_T) :: info
  integer :: handle, me, tasks, ierror
  call LAPI_INIT(handle, info, ierror)
  call LAPI_QENV(handle, TASK_ID, me, ierror)
  call LAPI_QENV(handle, NUM_TASKS, tasks, ierror)
  call LAPI_GFENCE(handle, ierror)
  write (*, '(A)') 'READY'
  flush (6)
  if (me == tasks - 1) then
     do
        call sleep(1)
     end do
  end if
  call LAPI_GFENCE(handle, ierror) ! here
  call LAPI_TERM(handle, ierror)
end program dead
