from django.urls import include, path

urlpatterns = [path("in/hooks/", include("hookonce.django.urls"))]
