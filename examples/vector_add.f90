! c = a + b with two arrays in near memory and one in far: Fortran. The tutorial has
!     real(8), allocatable :: a(:)
!     !dir$ attributes fastmem :: a
!     allocate (a(n))
! which only one compiler knew; nf_allocate takes its place in all of them.
program vector_add
  use nearfar
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  real(real64), pointer, contiguous :: a(:), b(:), c(:)
  character(len=32) :: word
  integer :: n, i, length
  n = 1000000
  call get_command_argument(1, word, length)
  if (length > 0) read (word, *) n
  call nf_allocate(a, n)
  call nf_allocate(b, n)
  call nf_allocate(c, n, tier=nf_far)
  do i = 1, n
    a(i) = real(i - 1, real64)
    b(i) = 0.5_real64 * real(i - 1, real64)
  end do
  !$omp parallel do simd
  do i = 1, n
    c(i) = a(i) + b(i)
  end do
  write (*, '(a,i0,a,f0.1)') 'vector add: ', n, ' elements, sum ', sum(c)
  call nf_deallocate(a)
  call nf_deallocate(b)
  call nf_deallocate(c)
end program vector_add
