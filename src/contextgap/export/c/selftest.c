/* Compares contextgap_policy.c on this machine with what Python answered. Returns 0 if all agree up
 * to rounding; near ties are counted separately. */

static contextgap_real worst; /* largest difference so far */

/* Whether two numbers agree up to rounding; a NaN agrees with nothing. */
static int agree(contextgap_real got, contextgap_real expected)
{
    const contextgap_real difference = got > expected ? got - expected : expected - got;
    if (!(difference <= worst)) {
        worst = difference;
    }
    return difference <= TOLERANCE;
}

static int may_fall_back(int vector)
{
#ifdef CONTEXTGAP_FALLBACK_ARM
    return near_tie[vector];
#else
    (void)vector;
    return 0;
#endif
}

static int numbers_agree(int vector, const contextgap_decision *decision)
{
    int good = 1;
    for (int arm = 0; arm < CONTEXTGAP_ARMS; arm++) {
        const int place = vector * CONTEXTGAP_ARMS + arm;
        good &= agree(decision->mean[arm], means[place]);
#if CONTEXTGAP_HAS_WIDTHS
        good &= agree(decision->width[arm], widths[place]);
        good &= agree(decision->gap[arm], gaps[place]);
#endif
    }
#if CONTEXTGAP_HAS_WIDTHS
    if (decision->arm == arms[vector] && !may_fall_back(vector)) {
        good &= agree(decision->certificate, certificates[vector]);
    }
#endif
    return good;
}

/* Among all arms, or among the one that is answered, the answer is the same. */
static int among_agrees(const contextgap_real *context, int status,
                        const contextgap_decision *decision)
{
#ifdef CONTEXTGAP_HAS_ELIGIBLE
    unsigned char everyone[CONTEXTGAP_ARMS];
    unsigned char only[CONTEXTGAP_ARMS];
    contextgap_decision among;
    for (int arm = 0; arm < CONTEXTGAP_ARMS; arm++) {
        everyone[arm] = 1;
        only[arm] = arm == decision->arm;
    }
    if (contextgap_decide_among(context, everyone, &among) != status ||
        among.arm != decision->arm) {
        return 0;
    }
    (void)contextgap_decide_among(context, only, &among);
    return among.arm == decision->arm;
#else
    (void)context;
    (void)status;
    (void)decision;
    return 1;
#endif
}

static int all_functions_agree(const contextgap_real *context, int status,
                               const contextgap_decision *decision)
{
    int arm = -1;
    return contextgap_recommend_checked(context, &arm) == status && arm == decision->arm &&
           contextgap_recommend(context) == arm && among_agrees(context, status, decision);
}

/* Infinities and, where no value may be missing, NaN, at every place of a context. */
static int failures_of_bad_input(void)
{
    volatile contextgap_real large = REAL_MAX;
    contextgap_real bad[3];
    contextgap_decision decision;
    int failures = 0;
    bad[0] = large * 2;
    bad[1] = -bad[0];
    bad[2] = bad[0] - bad[0];
    for (int place = 0; place < CONTEXTGAP_DIMENSION; place++) {
        for (int kind = 0; kind < bad_kinds[place]; kind++) {
            contextgap_real context[CONTEXTGAP_DIMENSION];
            for (int i = 0; i < CONTEXTGAP_DIMENSION; i++) {
                context[i] = i == place ? bad[kind] : contexts[i];
            }
            const int status = contextgap_decide(context, &decision);
            failures += !(status == CONTEXTGAP_INPUT_NOT_FINITE &&
                          decision.arm == CONTEXTGAP_DEFAULT_ARM &&
                          all_functions_agree(context, status, &decision));
        }
    }
    return failures;
}

int main(void)
{
    int other_arms = 0, close = 0, near_ties = 0, other_numbers = 0, inconsistent = 0;
    const int bad_input = failures_of_bad_input();
    for (int vector = 0; vector < COUNT; vector++) {
        const contextgap_real *context = &contexts[vector * CONTEXTGAP_DIMENSION];
        contextgap_decision decision;
        const int status = contextgap_decide(context, &decision);
        inconsistent += !all_functions_agree(context, status, &decision);
        other_numbers += (status != statuses[vector] && !may_fall_back(vector)) ||
                         !numbers_agree(vector, &decision);
        close += near_tie[vector];
        if (decision.arm != arms[vector]) {
            near_ties += near_tie[vector];
            other_arms += !near_tie[vector];
        }
    }
    printf("%d contexts, %d of them near ties: %d other arms, %d near ties decided otherwise, "
           "%d with other numbers (largest difference %.2e, allowed %.2e)\n",
           COUNT, close, other_arms, near_ties, other_numbers, (double)worst, (double)TOLERANCE);
    printf("%d contexts on which the functions disagree; "
           "%d failures for input that is not finite\n",
           inconsistent, bad_input);
    if (other_arms || other_numbers || inconsistent || bad_input) {
        printf("FAILED\n");
        return 1;
    }
    printf("passed\n");
    return 0;
}
