// Package weighted quantizes rows of weights with regard to the inputs that they are multiplied by.
//
// The formats are those of package quantize. What differs is the choice of codes, scales and biases: a [Coder]
// minimizes the error of a layer's outputs, which is the error of each weight times the second moments of the inputs.
//
//   - [Search] minimizes the sum over a group of d*(w-q)^2, where d is the mean square of the weight's input: codes are
//     alternated with the least squares of scale and bias.
//   - [Compensate] also moves the error of each column onto the later columns whose inputs are correlated with its
//     input (Frantar et al., GPTQ, arXiv 2210.17323). Blocks of columns are independent.
//
// Contract:
//   - The result is a function of the row, the statistics and the type alone. Sums are float64, in the order of the
//     columns or in four lanes of columns, and no product is fused with a sum. So it does not depend on the processor
//     or on the number of threads.
//   - A rule ([Rule]) is a version: its bytes never change.
//   - A Coder is immutable and safe for concurrent use. Rows are independent.
package weighted
