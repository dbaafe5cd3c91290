! What the Fortran test programs share. A check that fails says which it was, and ends the task, and so the job, with
! status 199. A task in which all held prints one line "PASS TASK" at ft_done.

! Fails unless a call has returned this code.
subroutine ft_code(ierror, want, what)
  implicit none
  integer, intent(in) :: ierror, want
  character(*), intent(in) :: what
  if (ierror /= want) then
     write (0, *) what, ': got ', ierror, ', expected ', want
     stop 199
  end if
end subroutine ft_code

! Fails unless a call has succeeded.
subroutine ft_ok(ierror, what)
  implicit none
  integer, intent(in) :: ierror
  character(*), intent(in) :: what
  call ft_code(ierror, 0, what)
end subroutine ft_ok

subroutine ft_eq(got, want, what)
  implicit none
  integer, intent(in) :: got, want
  character(*), intent(in) :: what
  if (got /= want) then
     write (0, *) what, ': got ', got, ', expected ', want
     stop 199
  end if
end subroutine ft_eq

subroutine ft_eq8(got, want, what)
  implicit none
  integer(kind=8), intent(in) :: got, want
  character(*), intent(in) :: what
  if (got /= want) then
     write (0, *) what, ': got ', got, ', expected ', want
     stop 199
  end if
end subroutine ft_eq8

subroutine ft_true(holds, what)
  implicit none
  logical, intent(in) :: holds
  character(*), intent(in) :: what
  if (.not. holds) then
     write (0, *) what, ': does not hold'
     stop 199
  end if
end subroutine ft_true

! LAPI_INIT without options, and the number of this task.
subroutine ft_init(hndl, me, tasks)
  implicit none
  include 'lapif.h'
  integer, intent(out) :: hndl, me, tasks
  integer :: info(14), ierror
  info = 0
  info(2) = LAST_LIB
  call LAPI_INIT(hndl, info, ierror)
  call ft_ok(ierror, 'LAPI_INIT')
  call LAPI_QENV(hndl, TASK_ID, me, ierror)
  call ft_ok(ierror, 'LAPI_QENV')
  call LAPI_QENV(hndl, NUM_TASKS, tasks, ierror)
  call ft_ok(ierror, 'LAPI_QENV')
end subroutine ft_init

subroutine ft_done(hndl, me)
  implicit none
  integer, intent(in) :: hndl, me
  integer :: ierror
  call LAPI_GFENCE(hndl, ierror)
  call ft_ok(ierror, 'LAPI_GFENCE')
  call LAPI_TERM(hndl, ierror)
  call ft_ok(ierror, 'LAPI_TERM')
  call ft_pass(me)
end subroutine ft_done

subroutine ft_pass(me)
  implicit none
  integer, intent(in) :: me
  character(20) :: line
  ! One write for the line: others write too.
  write (line, '(A, I0)') 'PASS ', me
  write (*, '(A)') trim(line)
  flush (6)
end subroutine ft_pass
