// Matrix product kernels for AVX-512 with VNNI.
#define INGOT_ISA avx512
#include "cpu_simd.h"

#include "cpu_small_batch_avx512.h"
#include "cpu_vector_avx512.h"
#include "cpu_matmul_x86.h"

namespace ingot::cpu {

extern const MatmulKernels matmul_avx512;
const MatmulKernels matmul_avx512 = avx512::kMatmul;

}  // namespace ingot::cpu
