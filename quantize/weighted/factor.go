package weighted

import (
	"fmt"
	"math"
)

// Factor is the upper triangular factor U of the inverse of a matrix of second moments, H^-1 = U^T U, whose rows say
// how the error of a column is moved onto later ones.
type Factor struct {
	n int
	u []float64 // [n, n], each row divided by its diagonal element
}

// Damping is the share of the mean of the diagonal that is added to it, so that the matrix has an inverse.
const Damping = 0.01

// NewFactor factors the second moments of n columns, moments [n, n]; only the lower triangle is read. Columns without
// inputs are independent of all others. It takes n^3 multiplications and 8 n^2 bytes.
func NewFactor(moments []float32, n int) (*Factor, error) {
	if len(moments) != n*n {
		return nil, fmt.Errorf("%w: %d moments of %d columns", ErrStatistics, len(moments), n)
	}
	a := widen(moments)
	var trace float64
	for i := range n {
		if v := a[i*n+i]; !(v >= 0) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%w: the second moment of column %d is %v", ErrStatistics, i, v)
		}
		trace += a[i*n+i]
	}
	damp := Damping * trace / float64(n)
	if damp == 0 {
		damp = 1
	}
	for i := range n {
		a[i*n+i] += damp
	}
	reverse(a, n)
	if err := cholesky(a, n); err != nil {
		return nil, err
	}
	invert(a, n)
	// a is now the inverse of L, where the reversed H is L L^T. Reversed again, it is U with H^-1 = U^T U.
	u := make([]float64, n*n)
	for i := range n {
		for j := i; j < n; j++ {
			u[i*n+j] = a[(n-1-i)*n+n-1-j]
		}
		by := 1 / u[i*n+i]
		for j := i; j < n; j++ {
			u[i*n+j] = float64(u[i*n+j] * by)
		}
	}
	return &Factor{n, u}, nil
}

// reverse reverses the order of rows and columns of a symmetric matrix, in the lower triangle.
func reverse(a []float64, n int) {
	for i := range n {
		for j := range i + 1 {
			from, to := i*n+j, (n-1-j)*n+n-1-i
			if from < to {
				a[from], a[to] = a[to], a[from]
			}
		}
	}
}

// cholesky replaces the lower triangle of a matrix by L, where the matrix is L L^T.
func cholesky(a []float64, n int) error {
	for i := range n {
		row := a[i*n:][:i+1]
		for j := range i + 1 {
			other := a[j*n:][:j+1]
			sum := row[j]
			for k, v := range other[:j] {
				sum -= float64(v * row[k])
			}
			if j < i {
				row[j] = sum / other[j]
				continue
			}
			if !(sum > 0) || math.IsInf(sum, 0) {
				return fmt.Errorf("%w: the second moments are not positive definite at column %d", ErrStatistics, i)
			}
			row[i] = math.Sqrt(sum)
		}
	}
	return nil
}

// invert replaces a lower triangular matrix by its inverse.
func invert(a []float64, n int) {
	sums := make([]float64, n)
	for i := range n {
		row := a[i*n:][:i+1]
		clear(sums[:i])
		for k, v := range row[:i] { // earlier rows are inverted already
			for j, x := range a[k*n:][:k+1] {
				sums[j] += float64(v * x)
			}
		}
		by := 1 / row[i]
		for j := range i {
			row[j] = -float64(sums[j] * by)
		}
		row[i] = by
	}
}

// compensate chooses the codes of the group that starts at a column, one column after the other, and moves the error of
// each onto the later columns of its block.
func (w *work) compensate(p parameters, first int) {
	f := w.factors[first/w.block]
	begin := first / w.block * w.block
	rest := w.row64[begin:min(begin+w.block, len(w.row64))]
	for i := range w.of.Group() {
		at := first - begin + i
		code, value := w.nearest(p, rest[at])
		w.bits[i] = code
		e := rest[at] - value
		u := f.u[at*f.n:][at+1 : f.n]
		later := rest[at+1:][:len(u)]
		for j, v := range u {
			later[j] -= float64(e * v)
		}
	}
}
