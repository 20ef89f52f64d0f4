shared |User user=Anna time_of_day=afternoon
|Action article=politics
0:0.0:0.25 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Tom time_of_day=morning
0:-1.0:0.25 |Action article=politics
|Action article=sports
|Action article=music
|Action article=food

shared |User user=Tom time_of_day=afternoon
|Action article=politics
|Action article=sports
0:-1.0:0.05000000074505806 |Action article=music
|Action article=food

shared |User user=Anna time_of_day=afternoon
|Action article=politics
|Action article=sports
0:0.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Anna time_of_day=afternoon
|Action article=politics
|Action article=sports
0:0.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Tom time_of_day=afternoon
0:0.0:0.05000000074505806 |Action article=politics
|Action article=sports
|Action article=music
|Action article=food

shared |User user=Tom time_of_day=afternoon
0:0.0:0.05000000074505806 |Action article=politics
|Action article=sports
|Action article=music
|Action article=food

shared |User user=Anna time_of_day=afternoon
|Action article=politics
|Action article=sports
0:0.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Tom time_of_day=afternoon
|Action article=politics
|Action article=sports
0:-1.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Tom time_of_day=morning
|Action article=politics
|Action article=sports
0:0.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Tom time_of_day=morning
|Action article=politics
|Action article=sports
0:0.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Tom time_of_day=afternoon
|Action article=politics
|Action article=sports
0:-1.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Tom time_of_day=afternoon
|Action article=politics
|Action article=sports
0:-1.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Tom time_of_day=afternoon
|Action article=politics
|Action article=sports
|Action article=music
0:0.0:0.05000000074505806 |Action article=food

shared |User user=Tom time_of_day=afternoon
|Action article=politics
|Action article=sports
0:-1.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Anna time_of_day=afternoon
|Action article=politics
|Action article=sports
0:0.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Anna time_of_day=morning
0:0.0:0.8500000238418579 |Action article=politics
|Action article=sports
|Action article=music
|Action article=food

shared |User user=Anna time_of_day=afternoon
|Action article=politics
|Action article=sports
0:0.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Tom time_of_day=morning
|Action article=politics
|Action article=sports
0:0.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Tom time_of_day=afternoon
|Action article=politics
|Action article=sports
0:-1.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Anna time_of_day=afternoon
|Action article=politics
|Action article=sports
0:0.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Anna time_of_day=afternoon
|Action article=politics
|Action article=sports
0:0.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Anna time_of_day=morning
|Action article=politics
0:-1.0:0.05000000074505806 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Tom time_of_day=morning
|Action article=politics
0:0.0:0.8500000238418579 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Tom time_of_day=morning
|Action article=politics
0:0.0:0.8500000238418579 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Tom time_of_day=afternoon
|Action article=politics
|Action article=sports
0:-1.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Anna time_of_day=afternoon
|Action article=politics
0:0.0:0.8500000238418579 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Anna time_of_day=morning
|Action article=politics
0:-1.0:0.8500000238418579 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Anna time_of_day=morning
|Action article=politics
0:-1.0:0.8500000238418579 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Anna time_of_day=morning
|Action article=politics
0:-1.0:0.8500000238418579 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Anna time_of_day=morning
|Action article=politics
0:-1.0:0.8500000238418579 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Anna time_of_day=morning
|Action article=politics
0:-1.0:0.8500000238418579 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Anna time_of_day=morning
|Action article=politics
0:-1.0:0.8500000238418579 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Anna time_of_day=morning
|Action article=politics
|Action article=sports
0:0.0:0.05000000074505806 |Action article=music
|Action article=food

shared |User user=Tom time_of_day=morning
|Action article=politics
0:0.0:0.8500000238418579 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Anna time_of_day=afternoon
|Action article=politics
|Action article=sports
0:0.0:0.05000000074505806 |Action article=music
|Action article=food

shared |User user=Tom time_of_day=morning
|Action article=politics
|Action article=sports
|Action article=music
0:0.0:0.05000000074505806 |Action article=food

shared |User user=Tom time_of_day=morning
|Action article=politics
0:0.0:0.8500000238418579 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Anna time_of_day=afternoon
|Action article=politics
|Action article=sports
|Action article=music
0:-1.0:0.05000000074505806 |Action article=food

shared |User user=Anna time_of_day=afternoon
|Action article=politics
|Action article=sports
|Action article=music
0:-1.0:0.8500000238418579 |Action article=food

shared |User user=Anna time_of_day=afternoon
|Action article=politics
|Action article=sports
|Action article=music
0:-1.0:0.8500000238418579 |Action article=food

shared |User user=Tom time_of_day=afternoon
|Action article=politics
|Action article=sports
0:-1.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Tom time_of_day=morning
0:-1.0:0.8500000238418579 |Action article=politics
|Action article=sports
|Action article=music
|Action article=food

shared |User user=Anna time_of_day=afternoon
|Action article=politics
|Action article=sports
|Action article=music
0:-1.0:0.8500000238418579 |Action article=food

shared |User user=Tom time_of_day=morning
0:-1.0:0.8500000238418579 |Action article=politics
|Action article=sports
|Action article=music
|Action article=food

shared |User user=Anna time_of_day=afternoon
|Action article=politics
|Action article=sports
|Action article=music
0:-1.0:0.8500000238418579 |Action article=food

shared |User user=Anna time_of_day=morning
|Action article=politics
0:-1.0:0.8500000238418579 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Tom time_of_day=afternoon
|Action article=politics
|Action article=sports
|Action article=music
0:0.0:0.05000000074505806 |Action article=food

shared |User user=Tom time_of_day=morning
|Action article=politics
|Action article=sports
|Action article=music
0:0.0:0.05000000074505806 |Action article=food

shared |User user=Tom time_of_day=afternoon
|Action article=politics
|Action article=sports
0:-1.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Tom time_of_day=morning
0:-1.0:0.8500000238418579 |Action article=politics
|Action article=sports
|Action article=music
|Action article=food

shared |User user=Anna time_of_day=afternoon
|Action article=politics
|Action article=sports
|Action article=music
0:-1.0:0.8500000238418579 |Action article=food

shared |User user=Anna time_of_day=morning
|Action article=politics
0:-1.0:0.8500000238418579 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Anna time_of_day=morning
|Action article=politics
|Action article=sports
0:0.0:0.05000000074505806 |Action article=music
|Action article=food

shared |User user=Anna time_of_day=morning
|Action article=politics
0:-1.0:0.8500000238418579 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Tom time_of_day=afternoon
0:0.0:0.05000000074505806 |Action article=politics
|Action article=sports
|Action article=music
|Action article=food

shared |User user=Anna time_of_day=afternoon
0:0.0:0.05000000074505806 |Action article=politics
|Action article=sports
|Action article=music
|Action article=food

shared |User user=Tom time_of_day=afternoon
|Action article=politics
|Action article=sports
0:-1.0:0.8500000238418579 |Action article=music
|Action article=food

shared |User user=Anna time_of_day=afternoon
|Action article=politics
0:0.0:0.05000000074505806 |Action article=sports
|Action article=music
|Action article=food

shared |User user=Tom time_of_day=afternoon
|Action article=politics
0:0.0:0.05000000074505806 |Action article=sports
|Action article=music
|Action article=food
