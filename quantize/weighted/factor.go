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
	var trace float64
	for i := range n {
		v := float64(moments[i*n+i])
		if !(v >= 0) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%w: the second moment of column %d is %v", ErrStatistics, i, v)
		}
		trace += v
	}
	damp := Damping * trace / float64(n)
	if damp == 0 {
		damp = 1
	}
	// The matrix with rows and columns reversed, in the upper triangle of rows that are whole vectors.
	stride := (n + 3) &^ 3
	a := make([]float64, n*stride)
	for i := range n {
		for j := i; j < n; j++ {
			a[i*stride+j] = float64(moments[(n-1-i)*n+n-1-j])
		}
		a[i*stride+i] += damp
	}
	if err := cholesky(a, n, stride); err != nil {
		return nil, err
	}
	// The reversed H is R^T R. Its lower triangular inverse of R^T, reversed again, is U with H^-1 = U^T U.
	x := invert(a, n, stride)
	u := a[:n*n]
	for i := range n {
		row := x[(n-1-i)*stride:][:n]
		by := 1 / row[n-1-i]
		for j := range i {
			u[i*n+j] = 0
		}
		for j := i; j < n; j++ {
			u[i*n+j] = float64(row[n-1-j] * by)
		}
	}
	return &Factor{n, u}, nil
}

// depth is how many rows of a matrix are subtracted from others at once.
const depth = 32

// cholesky replaces the upper triangle of a matrix by R, where the matrix is R^T R. What is below is undefined then.
func cholesky(a []float64, n, stride int) error {
	column := make([]float64, depth)
	for first := 0; first < n; first += depth {
		end := min(first+depth, n)
		for i := first; i < n; i++ {
			from := i &^ 3
			before := min(i, end) - first
			for k := range before {
				column[k] = a[(first+k)*stride+i]
			}
			row := a[i*stride:][:stride]
			if before > 0 {
				move(row[from:], a[first*stride+from:], stride, column[:before])
			}
			if i >= end {
				continue
			}
			pivot := row[i]
			if !(pivot > 0) || math.IsInf(pivot, 0) {
				return fmt.Errorf("%w: the second moments are not positive definite at column %d", ErrStatistics, n-1-i)
			}
			by := 1 / math.Sqrt(pivot)
			for j := i; j < n; j++ {
				row[j] = float64(row[j] * by)
			}
		}
	}
	return nil
}

// invert returns the inverse of R^T, which is lower triangular, for an upper triangular R.
func invert(r []float64, n, stride int) []float64 {
	x := make([]float64, n*stride)
	column := make([]float64, depth*depth)
	for first := 0; first < n; first += depth {
		rows := min(depth, n-first)
		for k := 0; k < first; k += depth { // rows that are inverted already
			for i := range rows {
				for c := range depth {
					column[i*depth+c] = r[(k+c)*stride+first+i]
				}
			}
			moveAll(x[first*stride:], stride, rows, k+depth, x[k*stride:], stride, column, depth)
		}
		for i := first; i < first+rows; i++ {
			row := x[i*stride:][:stride]
			for k := first; k < i; k++ {
				column[k-first] = r[k*stride+i]
			}
			move(row[:(i+3)&^3], x[first*stride:], stride, column[:i-first])
			by := 1 / r[i*stride+i]
			for j := range i {
				row[j] = float64(row[j] * by)
			}
			row[i] = by
		}
	}
	return x
}

// compensate chooses the codes of the group that starts at a column, for each row, and moves the error of each column
// onto the later columns of its block.
func (w *work) compensate(first int) {
	f, g := w.factors[first/w.block], w.of.Group()
	begin := first / w.block * w.block
	at, columns := first-begin, min(w.block, w.Columns()-begin)
	for r := range w.rows {
		row := w.row64[r*w.Columns()+begin:][:columns]
		e := w.errors[r*g:][:g]
		for i := range g {
			j := at + i
			done := i &^ 3
			for k := done; k < i; k++ {
				row[j] -= float64(e[k] * f.u[(at+k)*f.n+j])
			}
			code, value := w.nearest(w.chosen[r], row[j])
			w.bits[r*g+i] = code
			e[i] = row[j] - value
			if i&3 == 3 && i+1 < g {
				move(row[j+1:at+g], f.u[(at+done)*f.n+j+1:], f.n, e[done:i+1])
			}
		}
	}
	if rest := columns - at - g; rest > 0 {
		moveAll(w.row64[begin+at+g:], w.Columns(), w.rows, rest, f.u[at*f.n+at+g:], f.n, w.errors, g)
	}
}
