! Allocatable arrays of a module, as a Fortran program has them.
module fields
  implicit none
  real(8), allocatable :: u(:), v(:), w(:)
contains
  subroutine make_u(n)
    integer(8), intent(in) :: n
    allocate(u(n))
    u = 1
  end subroutine
  subroutine make_v(n)
    integer(8), intent(in) :: n
    allocate(v(n))
    v = 2
  end subroutine
  subroutine make_w(n)
    integer(8), intent(in) :: n
    allocate(w(n))
    w = 3
  end subroutine
  subroutine step()
    v = 0.5d0 * u + v
  end subroutine
end module

program main
  use fields
  implicit none
  character(32) :: text
  real(8) :: seconds, total, bytes_u, bytes_v, bytes_w, size
  integer(8) :: n, begun, now, rate
  integer :: k
  call get_command_argument(1, text)
  read (text, *) seconds
  call get_command_argument(2, text)
  read (text, *) n
  n = n * 131072
  size = 8d0 * n
  call make_u(n)
  call make_v(n)
  call make_w(n)
  bytes_u = size
  bytes_v = size
  bytes_w = size
  total = 0
  call system_clock(begun, rate)
  do
    call step()
    do k = 1, 3
      total = total + sum(w)
    end do
    bytes_u = bytes_u + size
    bytes_v = bytes_v + 2 * size
    bytes_w = bytes_w + 3 * size
    call system_clock(now)
    if (dble(now - begun) / dble(rate) > seconds) exit
  end do
  if (total == 1.234d0) print *, total
  call say('make_u', bytes_u)
  call say('make_v', bytes_v)
  call say('make_w', bytes_w)
contains
  subroutine say(object, bytes)
    character(*), intent(in) :: object
    real(8), intent(in) :: bytes
    print '(A,A,A,I0,A)', '{"object":"', object, '","sparse":false,"bytes":', int(bytes, 8), '}'
  end subroutine
end program
