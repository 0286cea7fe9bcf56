! flags: -fopenmp
! ALLOCATABLE arrays larger than near: matmul, reshape, move_alloc, automatic reallocation, array sections, unformatted file I/O.
program allocatable_arrays
  use iso_fortran_env, only: real64, int64
  implicit none
  real(real64), allocatable :: a(:), b(:), c(:,:), d(:,:), e(:)
  integer(int64), allocatable :: list(:), bigger(:)
  integer(int64) :: i, n, total
  integer :: unit, k
  n = 8_int64 * 1024 * 1024
  allocate(a(n), b(n))
  !$omp parallel do
  do i = 1, n
    a(i) = mod(i, 1000_int64)
    b(i) = mod(i, 17_int64)
  end do
  do k = 1, 3
    a = a + 2 * b
    b(1:n:3) = b(1:n:3) + 1
  end do
  print '(a,f0.1,1x,f0.1)', 'sums ', sum(a), sum(b)
  print '(a,f0.1,1x,i0)', 'max ', maxval(a), maxloc(a)
  open(newunit=unit, file='arrays.dat', form='unformatted', access='stream', status='replace')
  write(unit) a
  rewind(unit)
  allocate(e(n))
  read(unit) e
  close(unit, status='delete')
  print '(a,l1)', 'file ', all(e == a)
  deallocate(a, b, e)
  allocate(c(700, 700), d(700, 700))
  do k = 1, 700
    c(:, k) = k
    d(k, :) = 1.0_real64 / k
  end do
  print '(a,es20.12)', 'trace ', sum([(dot_product(c(k, :), d(:, k)), k = 1, 700)])
  d = matmul(c, d)
  print '(a,es20.12)', 'matmul ', sum(d)
  allocate(list(0))
  do k = 1, 40
    allocate(bigger(size(list, kind=int64) + 300000))
    bigger(1:size(list, kind=int64)) = list
    do i = size(list, kind=int64) + 1, size(bigger, kind=int64)
      bigger(i) = i * k
    end do
    call move_alloc(bigger, list)
  end do
  total = 0
  do i = 1, size(list, kind=int64)
    total = ieor(total, list(i) * i)
  end do
  print '(a,i0,1x,i0)', 'list ', size(list), total
end program
