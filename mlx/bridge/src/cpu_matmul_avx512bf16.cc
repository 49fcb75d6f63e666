// Products with AVX-512, VNNI and BF16; those of zen4, too, for which a file of its own would be compiled the same.
#define INGOT_ISA avx512bf16
#include "cpu_simd.h"

#include "cpu_small_batch_avx512.h"
#include "cpu_vector_avx512.h"
#include "cpu_matmul_x86.h"

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
