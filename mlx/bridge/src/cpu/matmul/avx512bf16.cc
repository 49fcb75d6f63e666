// Matrix product kernels for AVX-512 with VNNI and BF16, and those of zen4. zen4 differs only in its fastest paths, so
// it needs no unit of its own.
#define INGOT_ISA avx512bf16
#include "cpu/simd/simd.h"

#include "cpu/matmul/small_batch_avx512.h"
#include "cpu/matmul/vector_avx512.h"
#include "cpu/matmul/x86.h"

namespace ingot::cpu {

extern const MatmulKernels matmul_avx512bf16;
const MatmulKernels matmul_avx512bf16 = avx512bf16::kMatmul;

extern const MatmulKernels matmul_zen4;
const MatmulKernels matmul_zen4 = [] {
  MatmulKernels k = avx512bf16::kMatmul;
  k.winograd = true;
  return k;
}();

}  // namespace ingot::cpu
