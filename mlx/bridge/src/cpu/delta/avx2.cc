#define INGOT_ISA avx2
#include "cpu/delta/gates.h"
#include "cpu/delta/kernels.h"
#include "cpu/delta/wkv.h"

namespace ingot::cpu {

extern const DeltaKernels delta_avx2;
const DeltaKernels delta_avx2 = {
    .delta = {avx2::delta<float>, avx2::delta<f16>, avx2::delta<bf16>},
    .column_delta = {avx2::column_delta<float>, avx2::column_delta<f16>, avx2::column_delta<bf16>},
    .scan = {avx2::scan<float>, avx2::scan<f16>, avx2::scan<bf16>},
    .channels = avx2::channels,
    .softplus = avx2::softplus,
    .unit_gates = {avx2::unit_gates<float>, avx2::unit_gates<f16>, avx2::unit_gates<bf16>},
    .conv = {avx2::conv<float>, avx2::conv<f16>, avx2::conv<bf16>},
    .wkv = {avx2::wkv<float>, avx2::wkv<f16>, avx2::wkv<bf16>},
};

}  // namespace ingot::cpu
