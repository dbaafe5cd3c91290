C     Sizes of numbers, and where local variables are.
      PROGRAM NUMBERS
      REAL R
      REAL*4 R4
      DOUBLE PRECISION D
      INTEGER I
      LOGICAL L
      PRINT '(A,8I4)', 'real', STORAGE_SIZE(R)/8, STORAGE_SIZE(R4)/8,
     & STORAGE_SIZE(D)/8, STORAGE_SIZE(1.0)/8
      PRINT '(A,8I4)', 'integer', STORAGE_SIZE(I)/8, STORAGE_SIZE(L)/8,
     & STORAGE_SIZE(1)/8
      PRINT '(A,I2)', 'escape', LEN('a\tb')
      CALL WHERE
D     PRINT '(A)', 'debug'
      END
      SUBROUTINE WHERE
      INTEGER*8 DISTANCE
      INTEGER KEPT, FIXED
      COMMON /THERE/ FIXED
      KEPT = 1
      DISTANCE = ABS(LOC(KEPT) - LOC(FIXED))
      IF (DISTANCE .LT. 2**30) PRINT '(A)', 'local static'
      IF (DISTANCE .GE. 2**30) PRINT '(A)', 'local automatic'
      END
