/* The runtime of an exported policy. What comes before it is generated: includes, tables of
 * constants, and macros that say which parts a policy needs.
 *
 *   RULE            RULE_MEAN, RULE_UPPER, RULE_GAP or RULE_HISTORY: how arms are compared
 *   POINTS          POINTS_OWN: each arm has points and a factor; POINTS_COMMON: the same points,
 *                   and second factors; POINTS_SHARED: the same points, learning from each other
 *   HAS_WEIGHTS     1 if means come from weights . k, 0 if from innovations . v
 *   NUMBERS         how many numbers of a context kernels see
 *   SOLVED          entries of v = (factor's inverse) k to hold at once
 *   PRIOR           the mean where nothing was observed
 *   KERNEL(x, y)    the kernel, made of the functions that USES_... name
 *   HAS_WARP        if kernels see some numbers of a context on a logarithmic scale
 *   HAS_CODES       if the last numbers of a context are codes of categories
 *   TOLERANCE       if the fallback is the answer to a certificate above this
 *   FIRST_STEP, STEPS   the look-back compares the states after FIRST_STEP observations, ..., STEPS
 */
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0
#error "-ffast-math removes the checks for numbers that are not finite"
#endif

#define RULE_MEAN 0
#define RULE_UPPER 1
#define RULE_GAP 2
#define RULE_HISTORY 3
#define POINTS_OWN 0
#define POINTS_COMMON 1
#define POINTS_SHARED 2

/* Kernels are clamped so that nothing underflows: exponents at REAL_LOWEST, distances of a Matern
 * kernel at REAL_FARTHEST. */
#if CONTEXTGAP_FLOAT32
#define REAL_MAX FLT_MAX
#define REAL_HUGE HUGE_VALF
#define REAL_LOWEST (-85.0f)
#define REAL_FARTHEST 85.0f
#define REAL_EXP expf
#define REAL_SQRT sqrtf
#define REAL_SIN sinf
#define REAL_COS cosf
#define REAL_MOD fmodf
#define REAL_ABS fabsf
#define REAL_LOG1P log1pf
#else
#define REAL_MAX DBL_MAX
#define REAL_HUGE HUGE_VAL
#define REAL_LOWEST (-300.0)
#define REAL_FARTHEST 700.0
#define REAL_EXP exp
#define REAL_SQRT sqrt
#define REAL_SIN sin
#define REAL_COS cos
#define REAL_MOD fmod
#define REAL_ABS fabs
#define REAL_LOG1P log1p
#endif
#define REAL_ZERO ((contextgap_real)0.0)
#define REAL_ONE ((contextgap_real)1.0)
#define REAL_TWO ((contextgap_real)2.0)
#define REAL_THREE ((contextgap_real)3.0)
#define REAL_TURN ((contextgap_real)6.283185307179586)

typedef contextgap_real real;

static bool is_finite(real value)
{
    return (value >= -REAL_MAX) && (value <= REAL_MAX);
}

#if CONTEXTGAP_HAS_WIDTHS
static real larger(real a, real b)
{
    return (a > b) ? a : b;
}
#endif

#ifdef HAS_CODES
static bool differ(real a, real b)
{
    return (a < b) || (a > b);
}
#endif

/* `count` is how many numbers come before the codes of categories. */
#ifdef USES_DISTANCE
/* |x - y|^2 */
static real distance(const real *x, const real *y, size_t count)
{
    real sum = REAL_ZERO;
    for (size_t i = 0; i < count; i++) {
        const real t = x[i] - y[i];
        sum += t * t;
    }
#ifdef HAS_CODES
    for (size_t i = count; i < NUMBERS; i++) {
        sum += differ(x[i], y[i]) ? REAL_ONE : REAL_ZERO;
    }
#endif
    return sum;
}
#endif

#ifdef USES_SCALED_DISTANCE
/* The same, scaled. */
static real scaled_distance(const real *x, const real *y, const real *scale, size_t count)
{
    real sum = REAL_ZERO;
    for (size_t i = 0; i < count; i++) {
        const real t = (x[i] - y[i]) * scale[i];
        sum += t * t;
    }
#ifdef HAS_CODES
    for (size_t i = count; i < NUMBERS; i++) {
        const real t = differ(x[i], y[i]) ? scale[i] : REAL_ZERO;
        sum += t * t;
    }
#endif
    return sum;
}
#endif

#ifdef USES_PERIODIC_DISTANCE
static real periodic_distance(const real *x, const real *y, const real *frequency,
                              const real *roughness)
{
    real sum = REAL_ZERO;
    for (size_t i = 0; i < NUMBERS; i++) {
        const real t = roughness[i] * REAL_SIN(frequency[i] * (x[i] - y[i]));
        sum += t * t;
    }
    return sum;
}
#endif

#ifdef USES_CONSTANT
static real constant(const real *x, const real *y)
{
    (void)x;
    (void)y;
    return REAL_ONE;
}
#endif

#ifdef USES_PRODUCT
/* x . y */
static real product(const real *x, const real *y)
{
    real sum = REAL_ZERO;
    for (size_t i = 0; i < NUMBERS; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}
#endif

#ifdef USES_STANDARDISED_PRODUCT
/* The same of numbers minus a centre, scaled; codes have no centre. */
static real standardised_product(const real *x, const real *y, const real *scale,
                                 const real *centre, size_t count)
{
    real sum = REAL_ZERO;
    for (size_t i = 0; i < count; i++) {
        sum += ((x[i] - centre[i]) * scale[i]) * ((y[i] - centre[i]) * scale[i]);
    }
#ifdef HAS_CODES
    for (size_t i = count; i < NUMBERS; i++) {
        const real t = differ(x[i], y[i]) ? REAL_ZERO : scale[i];
        sum += t * t;
    }
#endif
    return sum;
}
#endif

#ifdef USES_POWER
static real power(real base, int degree)
{
    real result = base;
    for (int i = 1; i < degree; i++) {
        result *= base;
    }
    return result;
}
#endif

#ifdef USES_DECAY
static real decay(real exponent)
{
    return REAL_EXP((exponent < REAL_LOWEST) ? REAL_LOWEST : exponent);
}
#endif

#ifdef USES_MATERN
/* Of squared distances; the smoothness is order + 1/2. */
static real matern(real squared, int order)
{
    real r = REAL_SQRT(squared);
    real shape = REAL_ONE;
    r = (r > REAL_FARTHEST) ? REAL_FARTHEST : r;
    if (order > 0) {
        shape += r;
    }
    if (order > 1) {
        shape += (r * r) / REAL_THREE;
    }
    return shape * REAL_EXP(-r);
}
#endif

static real kernel(const real *x, const real *y)
{
    return KERNEL(x, y);
}
#define KERNEL_SELF(x) kernel((x), (x))

#ifdef HAS_WARP
static void warp(const real *x, real *seen)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        seen[i] = x[i];
        if (warp_unit[i] > REAL_ZERO) {
            const real away = x[i] - warp_centre[i];
            const real size = REAL_LOG1P(REAL_ABS(away) / warp_unit[i]);
            seen[i] = (away < REAL_ZERO) ? -size : size;
        }
    }
}
#endif

static bool is_finite_context(const real *x)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        if (!is_finite(x[i])) {
            return false;
        }
    }
    return true;
}

/* A null pointer makes all arms eligible. */
static bool is_eligible(const unsigned char *eligible, int arm)
{
#ifdef CONTEXTGAP_HAS_ELIGIBLE
    return (eligible == NULL) || (eligible[arm] != 0U);
#else
    (void)eligible;
    (void)arm;
    return true;
#endif
}

/* The first eligible arm; CONTEXTGAP_ARMS if there is none. */
static int first_arm(const unsigned char *eligible)
{
    int arm = 0;
    while ((arm < CONTEXTGAP_ARMS) && !is_eligible(eligible, arm)) {
        arm++;
    }
    return arm;
}

static bool is_better(const contextgap_decision *decision, int arm, int other)
{
#if RULE == RULE_MEAN
    return decision->mean[arm] > decision->mean[other];
#elif RULE == RULE_UPPER
    return (decision->mean[arm] + (decision->width[arm] / REAL_TWO)) >
           (decision->mean[other] + (decision->width[other] / REAL_TWO));
#else
    return decision->gap[arm] < decision->gap[other];
#endif
}

/* Ties go to the lowest index. */
static int best_arm(const unsigned char *eligible, const contextgap_decision *decision)
{
    int best = first_arm(eligible);
    for (int arm = best + 1; arm < CONTEXTGAP_ARMS; arm++) {
        if (is_eligible(eligible, arm) && is_better(decision, arm, best)) {
            best = arm;
        }
    }
    return best;
}

#if HAS_WEIGHTS
/* mean = prior + weights . k */
static int set_means(const real *x, real *mean)
{
#if POINTS == POINTS_OWN
    size_t point = 0;
    for (int arm = 0; arm < CONTEXTGAP_ARMS; arm++) {
        real shift = REAL_ZERO;
        for (size_t i = 0; i < sizes[arm]; i++) {
            shift += weights[point] * kernel(x, &support[point * NUMBERS]);
            point++;
        }
        mean[arm] = shift;
    }
#else
    for (int arm = 0; arm < CONTEXTGAP_ARMS; arm++) {
        mean[arm] = REAL_ZERO;
    }
    for (size_t i = 0; i < sizes[0]; i++) {
        const real k = kernel(x, &support[i * NUMBERS]);
        for (size_t arm = 0; arm < (size_t)CONTEXTGAP_ARMS; arm++) {
            mean[arm] += weights[(arm * sizes[0]) + i] * k;
        }
    }
#endif
    for (int arm = 0; arm < CONTEXTGAP_ARMS; arm++) {
        mean[arm] = PRIOR + mean[arm];
        if (!is_finite(mean[arm])) {
            return CONTEXTGAP_RESULT_NOT_FINITE;
        }
    }
    return CONTEXTGAP_OK;
}
#endif

#if CONTEXTGAP_HAS_WIDTHS
/* Four sums that do not wait for one another: faster, and rounded less. */
static real dot(const real *a, const real *b, size_t count)
{
    real s0 = REAL_ZERO;
    real s1 = REAL_ZERO;
    real s2 = REAL_ZERO;
    real s3 = REAL_ZERO;
    size_t i = 0;
    for (; (i + 4U) <= count; i += 4U) {
        s0 += a[i] * b[i];
        s1 += a[i + 1U] * b[i + 1U];
        s2 += a[i + 2U] * b[i + 2U];
        s3 += a[i + 3U] * b[i + 3U];
    }
    for (; i < count; i++) {
        s0 += a[i] * b[i];
    }
    return (s0 + s1) + (s2 + s3);
}

/* half width = reach * std; std^2 = k(x, x) - v . v, not below 0 whatever the rounding */
static real half_width(real variance, real arm_reach)
{
    return arm_reach * REAL_SQRT(larger(variance, REAL_ZERO));
}

static int set_interval(real shift, real variance, real arm_reach, int arm,
                        contextgap_decision *decision)
{
    const real half = half_width(variance, arm_reach);
    decision->mean[arm] = PRIOR + shift;
    decision->width[arm] = REAL_TWO * half;
    return (is_finite(decision->mean[arm]) && is_finite(variance) && is_finite(half))
               ? CONTEXTGAP_OK
               : CONTEXTGAP_RESULT_NOT_FINITE;
}

#if POINTS != POINTS_SHARED
/* gap = highest upper bound of the other eligible arms - own lower bound; 0 for an only arm */
static int set_gaps(const unsigned char *eligible, contextgap_decision *decision)
{
    real top = -REAL_HUGE;
    real second = -REAL_HUGE;
    int best = 0;
    for (int arm = 0; arm < CONTEXTGAP_ARMS; arm++) {
        const real upper = decision->mean[arm] + (decision->width[arm] / REAL_TWO);
        if (!is_eligible(eligible, arm)) {
            continue;
        }
        if (upper > top) {
            second = top;
            top = upper;
            best = arm;
        } else {
            second = larger(second, upper);
        }
    }
    for (int arm = 0; arm < CONTEXTGAP_ARMS; arm++) {
        const real lower = decision->mean[arm] - (decision->width[arm] / REAL_TWO);
        const real rival = (arm == best) ? second : top;
        real gap = (rival < -REAL_MAX) ? REAL_ZERO : (rival - lower);
        if (!is_finite(gap)) {
            return CONTEXTGAP_RESULT_NOT_FINITE;
        }
        decision->gap[arm] = is_eligible(eligible, arm) ? gap : REAL_HUGE;
    }
    return CONTEXTGAP_OK;
}
#endif
#endif

/* believe() sets means and widths, or returns why it could not. */
#if !CONTEXTGAP_HAS_WIDTHS
static int believe(const real *x, const unsigned char *eligible, contextgap_decision *decision)
{
    (void)eligible;
    return set_means(x, decision->mean);
}

#elif RULE == RULE_HISTORY
typedef struct {
    real prior_variance;
    real v[SOLVED]; /* (the factor's inverse) k, arm after arm */
    real shift[CONTEXTGAP_ARMS];
    real known[CONTEXTGAP_ARMS];
    size_t seen[CONTEXTGAP_ARMS]; /* observations taken in so far */
} history;

/* Take in an arm's next observation. */
static void observe(const real *x, int arm, history *past)
{
    const size_t i = past->seen[arm];
    const size_t point = first_point[arm] + i;
    const real *row = &factor[first_entry[arm] + ((i * (i + 1U)) / 2U)];
    real *v = &past->v[first_point[arm]];
    const real k = kernel(x, &support[point * NUMBERS]);
    v[i] = (k - dot(row, v, i)) / row[i];
    past->shift[arm] += v[i] * innovations[point];
    past->known[arm] += v[i] * v[i];
    past->seen[arm] = i + 1U;
}

static int update_interval(int arm, const history *past, contextgap_decision *decision)
{
    /* After n observations: each arm has one reach more than it has observations. */
    const real now = reach[first_point[arm] + (size_t)arm + past->seen[arm]];
    return set_interval(past->shift[arm], past->prior_variance - past->known[arm], now, arm,
                        decision);
}

/* Start after FIRST_STEP observations, with every arm's interval. */
static int begin(const real *x, history *past, contextgap_decision *decision)
{
    past->prior_variance = KERNEL_SELF(x);
    for (int arm = 0; arm < CONTEXTGAP_ARMS; arm++) {
        past->shift[arm] = REAL_ZERO;
        past->known[arm] = REAL_ZERO;
        past->seen[arm] = 0U;
    }
    for (long step = 0; step < FIRST_STEP; step++) {
        observe(x, pulls[step], past);
    }
    for (int arm = 0; arm < CONTEXTGAP_ARMS; arm++) {
        if (update_interval(arm, past, decision) != CONTEXTGAP_OK) {
            return CONTEXTGAP_RESULT_NOT_FINITE;
        }
    }
    return set_gaps(NULL, decision);
}

/* The leader of the first step whose smallest gap was smallest. */
static int believe(const real *x, const unsigned char *eligible, contextgap_decision *decision)
{
    history past;
    (void)eligible;
    if (begin(x, &past, decision) != CONTEXTGAP_OK) {
        return CONTEXTGAP_RESULT_NOT_FINITE;
    }
    decision->arm = best_arm(NULL, decision);
    real smallest = decision->gap[decision->arm];
    for (long step = FIRST_STEP; step < STEPS; step++) {
        observe(x, pulls[step], &past);
        if ((update_interval(pulls[step], &past, decision) != CONTEXTGAP_OK) ||
            (set_gaps(NULL, decision) != CONTEXTGAP_OK)) {
            return CONTEXTGAP_RESULT_NOT_FINITE;
        }
        const int leader = best_arm(NULL, decision);
        if (decision->gap[leader] < smallest) {
            smallest = decision->gap[leader];
            decision->arm = leader;
        }
    }
    decision->certificate = larger(smallest, REAL_ZERO);
    return CONTEXTGAP_OK;
}

#elif POINTS == POINTS_OWN
/* v = (the factor's inverse) k, row by row: entry i needs the entries before it and one kernel
 * value, so k itself is never stored. */
static int believe(const real *x, const unsigned char *eligible, contextgap_decision *decision)
{
    real v[SOLVED];
    const real prior_variance = KERNEL_SELF(x);
    const real *row = factor;
    size_t point = 0;
    for (int arm = 0; arm < CONTEXTGAP_ARMS; arm++) {
        real shift = REAL_ZERO;
        real known = REAL_ZERO;
        for (size_t i = 0; i < sizes[arm]; i++) {
            const real k = kernel(x, &support[point * NUMBERS]);
            v[i] = (k - dot(row, v, i)) / row[i];
#if HAS_WEIGHTS
            shift += weights[point] * k;
#else
            shift += v[i] * innovations[point];
#endif
            known += v[i] * v[i];
            row = &row[i + 1U];
            point++;
        }
        if (set_interval(shift, prior_variance - known, reach[arm], arm, decision) !=
            CONTEXTGAP_OK) {
            return CONTEXTGAP_RESULT_NOT_FINITE;
        }
    }
    return set_gaps(eligible, decision);
}

#elif POINTS == POINTS_COMMON
/* k and v = (the first factor's inverse) k serve all arms; u = (an arm's own factor's inverse) k
 * adds to the variance that v takes away from. */
static int believe(const real *x, const unsigned char *eligible, contextgap_decision *decision)
{
    real k[SOLVED];
    real v[SOLVED];
    real u[SOLVED];
    real left = KERNEL_SELF(x);
    const real *row = factor;
    for (size_t i = 0; i < sizes[0]; i++) {
        k[i] = kernel(x, &support[i * NUMBERS]);
        v[i] = (k[i] - dot(row, v, i)) / row[i];
        left -= v[i] * v[i];
        row = &row[i + 1U];
    }
    row = added;
    for (int arm = 0; arm < CONTEXTGAP_ARMS; arm++) {
        real variance = left;
        for (size_t i = 0; i < sizes[0]; i++) {
            u[i] = (k[i] - dot(row, u, i)) / row[i];
            variance += u[i] * u[i];
            row = &row[i + 1U];
        }
#if HAS_WEIGHTS
        const real shift = dot(&weights[(size_t)arm * sizes[0]], k, sizes[0]);
#else
        const real shift = dot(&innovations[(size_t)arm * sizes[0]], v, sizes[0]);
#endif
        if (set_interval(shift, variance, reach[arm], arm, decision) != CONTEXTGAP_OK) {
            return CONTEXTGAP_RESULT_NOT_FINITE;
        }
    }
    return set_gaps(eligible, decision);
}

#else
/* gap = highest upper bound of another eligible arm's lead; 0 for an only arm. The variance of the
 * difference of two arms rests on the difference of their v. */
static int set_gaps(real v[CONTEXTGAP_ARMS][SOLVED], real prior_variance,
                    const unsigned char *eligible, contextgap_decision *decision)
{
    real *gap = decision->gap;
    for (int arm = 0; arm < CONTEXTGAP_ARMS; arm++) {
        gap[arm] = -REAL_HUGE;
    }
    for (int a = 0; a < CONTEXTGAP_ARMS; a++) {
        for (int b = a + 1; b < CONTEXTGAP_ARMS; b++) {
            const real lead = decision->mean[b] - decision->mean[a];
            const size_t pair = ((size_t)a * (size_t)CONTEXTGAP_ARMS) + (size_t)b;
            real variance = unlike[pair] * prior_variance;
            real known = REAL_ZERO;
            if (!is_eligible(eligible, a) || !is_eligible(eligible, b)) {
                continue;
            }
            for (size_t i = 0; i < sizes[0]; i++) {
                const real difference = v[a][i] - v[b][i];
                known += difference * difference;
            }
            variance -= known;
            const real half = half_width(variance, reach[0]);
            if (!is_finite(lead) || !is_finite(variance) || !is_finite(half)) {
                return CONTEXTGAP_RESULT_NOT_FINITE;
            }
            gap[a] = larger(gap[a], half + lead);
            gap[b] = larger(gap[b], half - lead);
        }
    }
    for (int arm = 0; arm < CONTEXTGAP_ARMS; arm++) {
        gap[arm] = (gap[arm] < -REAL_MAX) ? REAL_ZERO : gap[arm];
        gap[arm] = is_eligible(eligible, arm) ? gap[arm] : REAL_HUGE;
    }
    return CONTEXTGAP_OK;
}

/* One factor serves all arms: v of an arm = (its inverse)(s k), where s says how alike the arm is
 * to the one observed at each point. Row by row: k itself is never stored. */
static int believe(const real *x, const unsigned char *eligible, contextgap_decision *decision)
{
    real v[CONTEXTGAP_ARMS][SOLVED];
    real shift[CONTEXTGAP_ARMS] = {0};
    real known[CONTEXTGAP_ARMS] = {0};
    const real prior_variance = KERNEL_SELF(x);
    const real *row = factor;
    for (size_t i = 0; i < sizes[0]; i++) {
        const real k = kernel(x, &support[i * NUMBERS]);
        for (size_t arm = 0; arm < (size_t)CONTEXTGAP_ARMS; arm++) {
            const real s = alike[(arm * ALIKE_COLUMNS) + (size_t)whose[i]];
            v[arm][i] = ((s * k) - dot(row, v[arm], i)) / row[i];
#if HAS_WEIGHTS
            shift[arm] += weights[(arm * sizes[0]) + i] * k;
#else
            shift[arm] += v[arm][i] * innovations[i];
#endif
            known[arm] += v[arm][i] * v[arm][i];
        }
        row = &row[i + 1U];
    }
    for (int arm = 0; arm < CONTEXTGAP_ARMS; arm++) {
        if (set_interval(shift[arm], prior_variance - known[arm], reach[0], arm, decision) !=
            CONTEXTGAP_OK) {
            return CONTEXTGAP_RESULT_NOT_FINITE;
        }
    }
    return set_gaps(v, prior_variance, eligible, decision);
}
#endif

#ifdef CONTEXTGAP_FALLBACK_ARM
/* Whether one of the numbers that kernels see lies outside the observed range. */
static bool is_outside(const real *x)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        if ((x[i] < seen_low[i]) || (x[i] > seen_high[i])) {
            return true;
        }
    }
    return false;
}

/* Answer the fallback where too little is known, and return why. */
static int fall_back(const real *x, const unsigned char *eligible, contextgap_decision *decision)
{
    int reason = CONTEXTGAP_OK;
#ifdef TOLERANCE
    if (!(decision->certificate <= TOLERANCE)) {
        reason = CONTEXTGAP_BOUND_TOO_LARGE;
    }
#endif
    if (is_outside(x)) {
        reason = CONTEXTGAP_OUTSIDE;
    }
    if (reason == CONTEXTGAP_OK) {
        return reason;
    }
#ifdef CONTEXTGAP_HAS_ELIGIBLE
    if (!is_eligible(eligible, CONTEXTGAP_FALLBACK_ARM)) {
        return CONTEXTGAP_NO_FALLBACK;
    }
#else
    (void)eligible;
#endif
    decision->arm = CONTEXTGAP_FALLBACK_ARM;
#if CONTEXTGAP_HAS_WIDTHS
    decision->certificate = larger(decision->gap[CONTEXTGAP_FALLBACK_ARM], REAL_ZERO);
#endif
    return reason;
}
#endif

/* Nothing could be computed, so nothing is certified. */
static void fail(const unsigned char *eligible, contextgap_decision *decision)
{
    decision->arm = CONTEXTGAP_DEFAULT_ARM;
#ifdef CONTEXTGAP_HAS_ELIGIBLE
    if (!is_eligible(eligible, CONTEXTGAP_DEFAULT_ARM)) {
        decision->arm = CONTEXTGAP_NO_ARM;
    }
#else
    (void)eligible;
#endif
    for (int arm = 0; arm < CONTEXTGAP_ARMS; arm++) {
        decision->mean[arm] = REAL_ZERO;
#if CONTEXTGAP_HAS_WIDTHS
        decision->width[arm] = REAL_HUGE;
        decision->gap[arm] = REAL_HUGE;
#endif
    }
#if CONTEXTGAP_HAS_WIDTHS
    decision->certificate = REAL_HUGE;
#endif
}

/* With arm_only, all but the arm may be wrong: means alone are computed where they suffice. */
static int decide_seen(const real *x, const unsigned char *eligible, bool arm_only,
                       contextgap_decision *decision)
{
    int status = CONTEXTGAP_INPUT_NOT_FINITE;
    (void)arm_only;
    if (is_finite_context(x)) {
#ifdef HAS_WARP
        real seen[NUMBERS];
        warp(x, seen);
#else
        const real *const seen = x;
#endif
#if HAS_WEIGHTS && CONTEXTGAP_HAS_WIDTHS
        status = arm_only ? set_means(seen, decision->mean) : believe(seen, eligible, decision);
#else
        status = believe(seen, eligible, decision);
#endif
    }
#ifdef CONTEXTGAP_HAS_ELIGIBLE
    if (first_arm(eligible) == CONTEXTGAP_ARMS) {
        status = CONTEXTGAP_NONE_ELIGIBLE;
    }
#endif
    if (status != CONTEXTGAP_OK) {
        fail(eligible, decision);
        return status;
    }
#if RULE != RULE_HISTORY
    decision->arm = best_arm(eligible, decision);
#if CONTEXTGAP_HAS_WIDTHS
    decision->certificate = larger(decision->gap[decision->arm], REAL_ZERO);
#endif
#endif
#ifdef CONTEXTGAP_FALLBACK_ARM
    status = fall_back(x, eligible, decision);
#endif
    return status;
}

#if CONTEXTGAP_HAS_COLUMNS
/* What becomes of a column's number; 0 if it stays. */
#define COSINE 1U
#define SINE 2U
#define IS_MISSING 3U
#define CODE 4U

static bool is_missing(real value)
{
    return !((value <= REAL_ZERO) || (value > REAL_ZERO));
}

/* A code that is no level's is like no level; where there are MOST_LEVELS, like all that are rare.
 * What is not finite has no answer and stays. */
static real known_code(real value, real levels, bool *all_known)
{
    if (!is_finite(value)) {
        return value;
    }
    if ((value >= REAL_ZERO) && (value < levels) && !((real)(int)value < value)) {
        return value;
    }
    *all_known = false;
    return (levels < MOST_LEVELS) ? -REAL_ONE : levels;
}

/* What kernels see of a row; returns whether all levels are known. */
static bool spread(const real *row, real *x)
{
    bool all_known = true;
    for (size_t i = 0; i < NUMBERS; i++) {
        const real value = row[spread_source[i]];
        const real by = spread_by[i];
        const unsigned char how = spread_how[i];
        const bool missing = is_missing(value);
        real seen = value;
        if ((how == COSINE) || (how == SINE)) {
            /* The remainder is exact, while a float keeps little of a date in turns. */
            const real angle = REAL_TURN * (REAL_MOD(value, by) / by);
            seen = (how == COSINE) ? REAL_COS(angle) : REAL_SIN(angle);
        }
        seen = missing ? spread_missing[i] : seen;
        if (how == IS_MISSING) {
            seen = missing ? REAL_ONE : REAL_ZERO;
        }
        if (how == CODE) {
            seen = known_code(seen, by, &all_known);
        }
        x[i] = seen;
    }
    return all_known;
}

#endif

static int decide_row(const real *row, const unsigned char *eligible, bool arm_only,
                      contextgap_decision *decision)
{
#if CONTEXTGAP_HAS_COLUMNS
    real x[NUMBERS];
    const bool all_known = spread(row, x);
    const int status = decide_seen(x, eligible, arm_only, decision);
    return ((status == CONTEXTGAP_OK) && !all_known) ? CONTEXTGAP_LEVEL_UNKNOWN : status;
#else
    return decide_seen(row, eligible, arm_only, decision);
#endif
}

#ifdef HAS_LEVELS
static bool same_text(const char *a, const char *b)
{
    size_t i = 0;
    if ((a == NULL) || (b == NULL)) {
        return a == b;
    }
    while ((a[i] != '\0') && (a[i] == b[i])) {
        i++;
    }
    return a[i] == b[i];
}

static int find_level(const char *const *levels, int count, const char *text)
{
    for (int code = 0; code < count; code++) {
        if (same_text(levels[code], text)) {
            return code;
        }
    }
    return -1;
}
#endif

int contextgap_decide(const real *context, contextgap_decision *decision)
{
    return decide_row(context, NULL, false, decision);
}

#ifdef CONTEXTGAP_HAS_ELIGIBLE
int contextgap_decide_among(const real *context, const unsigned char *eligible,
                            contextgap_decision *decision)
{
    return decide_row(context, eligible, false, decision);
}
#endif

int contextgap_recommend_checked(const real *context, int *arm)
{
    contextgap_decision decision = {0};
    const int status = decide_row(context, NULL, true, &decision);
    *arm = decision.arm;
    return status;
}

int contextgap_recommend(const real *context)
{
    int arm;
    (void)contextgap_recommend_checked(context, &arm);
    return arm;
}
