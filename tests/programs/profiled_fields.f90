! An allocatable and a COMMON block of known sizes.
program profiled
  implicit none
  real(8), allocatable :: psi(:)
  real(8) :: field(100000)
  integer :: i, round
  common /fields/ field
  call set(psi)
  field = 0
  do round = 1, 200
    do i = 1, 100000
      field(i) = field(i) + psi(i)
    end do
  end do
  if (sum(field) == 200 * 100000d0) print '(a)', 'OK'
contains
  subroutine set(a)
    real(8), allocatable, intent(out) :: a(:)
    allocate(a(400000))
    a = 1
  end subroutine
end program
